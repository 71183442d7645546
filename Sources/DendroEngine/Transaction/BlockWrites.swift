import DendroTree
import Synchronization

/// What a running transaction's block writes: kept until the transaction has ended, and then submitted as other writes
/// are. If the engine is closed before that, it is submitted by then.
final class BlockWrites: Sendable {
  /// The most writes that one transaction's block may make.
  static let limit = 16_384

  private typealias Kept = [(
    write: EncodedWrite, judge: (any WriteJudge)?, completion: Completion?
  )]
  /// Oldest first.
  private let kept = Mutex<Kept>([])
  /// Held while writes are submitted: the end of a transaction and the closing of the engine may meet.
  private let order = Mutex(())

  var isEmpty: Bool { kept.withLock { $0.isEmpty } }

  /// - Returns: false if there are too many.
  func append(
    _ write: EncodedWrite, _ judge: (any WriteJudge)?, _ completion: Completion?
  ) -> Bool {
    kept.withLock { kept in
      guard kept.count < Self.limit else { return false }
      kept.append((write, judge, completion))
      return true
    }
  }

  /// Calls `body` with each of the writes, in their order. Once this returns no other thread is about to do so.
  func takeAll(_ body: (EncodedWrite, (any WriteJudge)?, Completion?) -> Void) {
    order.withLock { _ in
      let taken = kept.withLock { kept in
        defer { kept = [] }
        return kept
      }
      for (write, judge, completion) in taken { body(write, judge, completion) }
    }
  }
}
