import Synchronization

/// How far both parts of a verification are, on one line: the bytes of log and checkpoints that are done.
final class VerificationProgress: Sendable {
  private let state: Mutex<State>

  private struct State {
    let progress = Progress("verifying:")
    var total: UInt64 = 0
    var checkpoints: UInt64 = 0
    var log: UInt64 = 0
    var writeCount: UInt64 = 0
    /// The checkpoint that is being read; nil behind the last one.
    var checkpoint: String?

    func draw(_ isStep: Bool) {
      let writes = "\(Format.count(writeCount, "write"))"
      let details = checkpoint.map { writeCount > 0 ? "\($0), \(writes)" : $0 } ?? writes
      if isStep {
        progress.begin(checkpoints + log, of: total, details)
      } else {
        progress.update(checkpoints + log, of: total, details)
      }
    }
  }

  init() { state = Mutex(State()) }

  var seconds: Double { state.withLock { $0.progress.seconds } }

  /// Notes how many bytes there are to read in all.
  func set(total: UInt64) { state.withLock { $0.total = total } }

  func begin(_ step: String) { state.withLock { $0.progress.begin(0, of: nil, step) } }

  func begin(checkpoint: String?) {
    state.withLock {
      $0.checkpoint = checkpoint
      $0.draw(true)
    }
  }

  func update(checkpointByteCount: UInt64) {
    state.withLock {
      $0.checkpoints = checkpointByteCount
      $0.draw(false)
    }
  }

  func update(logByteCount: UInt64, writeCount: UInt64) {
    state.withLock {
      $0.log = logByteCount
      $0.writeCount = writeCount
      $0.draw(false)
    }
  }

  func clear() { state.withLock { $0.progress.clear() } }
}
