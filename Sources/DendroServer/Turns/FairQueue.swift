import Dendro
import DendroTree
import Dispatch
import Synchronization

/// Runs the long work of many clients on a few threads. Each client's work is done in its order, a piece at a time, and the clients
/// take turns: whoever asks for much waits for it, and nobody else does.
///
/// The work may not wait for the disk.
final class FairQueue: Sendable {
  typealias Work = @Sendable () -> Void

  private struct State {
    /// What waits, by client. A client is here while some of its work waits or is done.
    var work: [ObjectIdentifier: Queue<Work>] = [:]
    /// Clients of whose work nothing is done now.
    var turns = Queue<ObjectIdentifier>()
    var threadCount = 0
  }

  private let state = Mutex(State())
  private let threadCountMax: Int
  private let start: @Sendable (@escaping Work) -> Void

  /// - Parameters:
  ///   - threadCount: the most pieces that are done at the same time.
  ///   - start: does work on another thread.
  init(
    threadCount: Int = max(1, processorCount / 2),
    start: @escaping @Sendable (@escaping Work) -> Void = LongWorkThreads.async
  ) {
    threadCountMax = threadCount
    self.start = start
  }

  /// Does a piece of a client's work when it is its turn.
  func async(for client: AnyObject, _ work: @escaping Work) {
    let client = ObjectIdentifier(client)
    let begins = state.withLock { state in
      if state.work[client] == nil { state.turns.append(client) }
      state.work[client, default: Queue()].append(work)
      guard state.threadCount < threadCountMax, !state.turns.isEmpty else { return false }
      state.threadCount += 1
      return true
    }
    if begins { start { self.run() } }
  }

  /// Does one piece: the threads serve other queues as well.
  private func run() {
    guard let (client, work) = next() else { return }
    work()
    state.withLock { state in
      if state.work[client]?.isEmpty ?? true {
        state.work[client] = nil
      } else {
        state.turns.append(client)
      }
    }
    start { self.run() }
  }

  private func next() -> (ObjectIdentifier, Work)? {
    state.withLock { state in
      guard let client = state.turns.popFirst(), let work = state.work[client]?.popFirst() else {
        state.threadCount -= 1
        return nil
      }
      return (client, work)
    }
  }
}
