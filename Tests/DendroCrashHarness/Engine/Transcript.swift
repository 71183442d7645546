import Synchronization

/// Everything that was said, in order, as one checksum (FNV-1a): two runs that say the same have the
/// same, in one process or in two.
package final class Transcript: Sendable {
  private let state = Mutex<(digest: UInt64, lineCount: Int)>((0xcbf2_9ce4_8422_2325, 0))

  package init() {}

  package var digest: UInt64 { state.withLock { $0.digest } }
  package var lineCount: Int { state.withLock { $0.lineCount } }

  package func note(_ line: String) { note(Array((line + "\n").utf8)) }

  package func note(_ bytes: [UInt8]) {
    state.withLock { state in
      var digest = state.digest
      for byte in bytes { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01b3 }
      state.digest = digest
      state.lineCount += 1
    }
  }
}
