import Dispatch

extension DispatchQueue {
  /// Holds the queue up until the semaphore is signalled. Returns once it stands.
  func standStill() -> DispatchSemaphore {
    let (gate, isStanding) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    async {
      isStanding.signal()
      gate.wait()
    }
    isStanding.wait()
    return gate
  }
}
