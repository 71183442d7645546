import DendroTree

extension Database {
  /// Brings the data to the form that this program wants, step by step.
  ///
  /// The number of steps that were done is kept at a path. Steps that were not done yet run in order, each of them once and
  /// in a transaction of its own with the number: after a crash a step was done with all that it changes, or not at all.
  ///
  /// ```swift
  /// try await database.migrate(versionAt: "version", [
  ///   { data in  // 1: a name has two parts
  ///     for case let user as MutableData in data["users"].children {
  ///       let parts = (user["name"].string ?? "").split(separator: " ", maxSplits: 1)
  ///       user["name"].value = ["first": parts.first.map(String.init), "last": parts.dropFirst().first.map(String.init)]
  ///     }
  ///   },
  ///   { data in data["cache"].value = nil },  // 2
  /// ])
  /// ```
  ///
  /// Call it behind `open`, before anything else reads or writes. ``DatabaseOptions/transactionTimeLimit`` does not hold for
  /// steps.
  ///
  /// - Parameters:
  ///   - path: of the number, from the root on. 0 if there is none.
  ///   - steps: each gets all data. Only append to them: those that were done are known by their number. What a step throws
  ///     ends the migration, and nothing of that step is written.
  /// - Returns: how many steps were done before.
  /// - Throws: ``DatabaseError/Code/unsupportedFormat`` if more steps were done than there are, by a newer program, and
  ///   ``DatabaseError/Code/invalidData`` if there is something else than a number at the path; nothing was changed then.
  ///   What a step throws, and what a transaction throws.
  /// - Complexity: O(size of the data) for each step that is done.
  @discardableResult
  public func migrate(
    versionAt path: String, _ steps: [@Sendable (MutableData) throws -> Void]
  ) async throws -> Int {
    let place = reference(withPath: path)
    if place.failure == nil, place.location.isRoot {
      throw DatabaseError(
        ValidationError(
          .invalidArgument, "the version cannot stand at /, where the data of all steps is"))
    }
    let before = try Self.version(in: try await place.getData().typedValue, at: path, steps.count)
    let relative = place.location
    for (index, step) in steps.enumerated().dropFirst(before) {
      try await reference().transaction(hasTimeLimit: false) { data in
        let version = MutableData(data.draft, at: relative)
        let done = try Self.version(in: Database.Value(version.node), at: path, .max)
        // Another process cannot have done it, but a task of this one.
        guard done == index else { return }
        try step(data)
        _ = try Self.version(in: Database.Value(version.node), at: path, .max)
        version.int = index + 1
      }
    }
    return before
  }

  private static func version(
    in value: Database.Value, at path: String, _ count: Int
  ) throws(DatabaseError) -> Int {
    if value.isNull { return 0 }
    guard let version = value.int, version >= 0 else {
      throw DatabaseError(
        ValidationError(
          .invalidData, "at \(path): what is there is no number of steps that were done"))
    }
    guard version <= count else {
      throw DatabaseError(
        .unsupportedFormat, "SchemaTooNew",
        "the data at \(path) say that \(version) steps were done, and this program knows \(count)")
    }
    return version
  }
}
