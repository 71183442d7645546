import Foundation

extension Failure {
  /// There is no database in a directory. If there are some in directories inside, they are named.
  static func noDatabase(at path: String) -> Failure {
    var failure = Failure(.problem, "there is no database at \(path)")
    let names = databases(in: path)
    guard let first = names.first else { return failure }
    let examples = names.prefix(3).map(quoted).joined(separator: ", ")
    let rest = names.count > 3 ? " and \(Format.count(names.count - 3)) more" : ""
    failure.hint =
      "it has databases inside: \(examples)\(rest); name one of them, as in \(path)/\(first)"
    return failure
  }

  /// The names of the databases inside a directory, sorted.
  private static func databases(in path: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.sorted().filter { (try? ServedData.isDatabase("\(path)/\($0)")) == true }
  }
}
