import DendroEngine
import DendroTree

/// The content hashes of both trees of a database.
struct TreeHashes: Hashable, Sendable, CustomStringConvertible {
  var data: UInt64
  /// Of the second root; nil if that is empty.
  var system: UInt64?

  init(data: UInt64, system: Node) {
    self.data = data
    self.system = system.isEmpty ? nil : CheckpointCoding.contentHash(of: system)
  }

  var description: String {
    Survey.hash(data) + (system.map { " with the second root \(Survey.hash($0))" } ?? "")
  }
}
