import DendroTree
import Synchronization

/// A write that is admitted behind a transaction, or behind all others.
final class HeldWrite: Sendable {
  let write: EncodedWrite
  let completion: Completion?
  private let problem = Mutex<EngineError?>(nil)

  init(_ write: EncodedWrite, _ completion: Completion?) {
    self.write = write
    self.completion = completion
  }

  /// Why it cannot be admitted; nil where that is not known.
  var failure: EngineError? {
    get { problem.withLock { $0 } }
    set { problem.withLock { $0 = newValue } }
  }
}

/// Pages that have to be read, without the admission lock, before writes can be admitted under it.
struct NeededPages {
  let root: Node
  let pages: CheckpointPages
  let writes: [HeldWrite]
}

extension Admission {
  /// The pages that writes need and that were not read yet; nil if there are none.
  func neededPages(for writes: [HeldWrite]) -> NeededPages? {
    guard let pages, pages.isPartial else { return nil }
    let root = root
    let unread = writes.filter { held in
      held.failure == nil && !held.write.withView { root.isLoaded(for: $0) }
    }
    return unread.isEmpty ? nil : NeededPages(root: root, pages: pages, writes: unread)
  }

  /// Admits writes that were held back, whose pages are in memory.
  ///
  /// - Returns: the refusals that the caller reports once it has released the lock.
  mutating func admit(_ writes: [HeldWrite], now: Int64) -> [(EngineError, Completion?)] {
    var refused: [(EngineError, Completion?)] = []
    for held in writes {
      let completion = held.completion
      let refusal =
        held.failure ?? held.write.withView { admit($0, now: now, completion: completion) }
      if let refusal, !complete(completion, .failure(refusal)) {
        refused.append((refusal, completion))
      }
    }
    return refused
  }
}

extension CommitPipeline {
  /// Reads pages on the calling thread. A write whose pages cannot be read is refused when it is admitted.
  func load(_ needed: NeededPages) {
    for held in needed.writes {
      held.failure = load(needed.pages, of: needed.root, for: held.write)
    }
  }
}
