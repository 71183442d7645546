package import DendroTree

/// One step of a workload on an engine.
package enum Step: Sendable {
  /// Admitted together: one group commit.
  case write([Write])
  case synchronize
  case checkpoint
  case roll
  /// In order, and opened again.
  case close
  /// The process is killed at the n-th call to the disk from here on, wherever that falls: the disk
  /// stays on, and a write at that call gets in so many bytes.
  case kill(call: Int, bytes: Int)

  package static func set(_ path: String, _ value: Scalar) -> Step {
    .write([.set(Path(path), Node(value))])
  }
}

extension Path {
  /// A path of a test's own making.
  package init(_ text: String) {
    do {
      try self.init(parsing: text)
    } catch {
      preconditionFailure("\(error)")
    }
  }
}

extension Key {
  /// A key of a test's own making.
  package init(of text: String) {
    do {
      try self.init(text)
    } catch {
      preconditionFailure("\(error)")
    }
  }
}
