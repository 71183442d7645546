import DendroTree
import Dispatch
import Synchronization

// What is due once the lock is released: to dispatch a drain, to resume consumers, to free states.

extension EventHub {
  /// Changes the state under the lock, and hands over what is due. The caller holds no other lock.
  @discardableResult
  func add<R: Sendable>(_ body: @Sendable (inout State) -> R) -> R {
    let (result, due) = state.withLock { state in (body(&state), takeHandOver(&state)) }
    perform(due)
    return result
  }

  /// Hands over what is due: dispatches a drain if there is work and no drain yet, resumes consumers and
  /// frees states. The caller holds neither the admission lock nor that of `.info`, since dispatching may wake a thread; a
  /// turn holds that of the disk.
  func handOver() { perform(state.withLock { takeHandOver(&$0) }) }

  private struct HandOver: Sendable {
    var drain: Drain?
    var resumable: [Subscription.Waiter]
    /// Whether to dispatch a block that frees states.
    var frees: Bool
    var endedUses: [RemoteUse]
    var endUses: (@Sendable ([RemoteUse]) -> Void)?
  }

  private func takeHandOver(_ state: inout State) -> HandOver {
    let due = HandOver(
      drain: state.work.beginDrain() ? newDrain(&state) : nil, resumable: state.resumable,
      frees: state.needsFreeing, endedUses: state.endedUses, endUses: state.endUses)
    state.resumable = []
    state.endedUses = []
    if due.frees { state.isFreeing = true }
    return due
  }

  private func perform(_ due: HandOver) {
    due.drain.map(dispatch)
    // Not on this thread, which may be a writer's: an executor may be the application's code, and freeing a
    // large tree takes long.
    if !due.resumable.isEmpty {
      Self.resumingQueue.async {
        ThreadName.resuming.during { for waiter in due.resumable { waiter.resume() } }
      }
    }
    if !due.endedUses.isEmpty { due.endUses?(due.endedUses) }
    if due.frees { Self.freeingQueue.async { ThreadName.freeing.during { self.freeReplaced() } } }
  }

  // Not global queues: an application may block all their threads.
  private static let resumingQueue = DispatchQueue(label: ThreadName.resuming.rawValue)
  private static let freeingQueue = DispatchQueue(label: ThreadName.freeing.rawValue)

  private func freeReplaced() {
    let replaced = state.withLock { state in
      let replaced = state.replaced
      state.replaced = []
      state.isFreeing = false
      return replaced
    }
    withExtendedLifetime(replaced) {}
  }
}
