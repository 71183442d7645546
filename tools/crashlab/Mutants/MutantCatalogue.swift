extension MutantsCommand {
  /// Empty except in the copy of the tree that `tools/mutants` builds: there this file has what the
  /// catalogue in Tests/Mutants says.
  static let catalogue: [Entry] = []
}
