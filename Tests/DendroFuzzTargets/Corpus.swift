import Foundation

/// The inputs of a target that are kept: what the fuzzer found worth it, and every input that once
/// broke something.
package struct Corpus: Sendable {
  /// Where it stands.
  package let path: String

  /// Tests/Fixtures/Fuzz of the sources that this was built from.
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fixtures/Fuzz").path

  package init(of target: FuzzTarget) { path = "\(Self.root)/\(target.name)" }

  /// The names of the inputs, in their order; those that begin with «found-» are findings.
  package func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path)
      .filter { !$0.hasPrefix(".") }.sorted()
  }

  package func input(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
  }
}
