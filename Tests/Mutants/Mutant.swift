#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The guards that can be taken away in this copy of the tree, see Tests/Mutants/README.txt.
enum Mutant: Int, CaseIterable, Sendable {
  // CASES

  /// Decided once: DENDRO_PLANTED holds names, with commas between them.
  private static let planted: [Bool] = {
    var planted = Array(repeating: false, count: allCases.count)
    guard let value = getenv("DENDRO_PLANTED") else { return planted }
    for name in String(cString: value).split(separator: ",") {
      guard let mutant = allCases.first(where: { "\($0)" == name }) else {
        preconditionFailure("there is no mutant \(name)")
      }
      planted[mutant.rawValue] = true
    }
    return planted
  }()

  /// Whether the guard is taken away.
  var isPlanted: Bool { Self.planted[rawValue] }
}
