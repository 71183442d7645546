import DendroPlatform
import Foundation
import Synchronization

/// The thread that serves all lines of a process.
final class LineLoop: Sendable {
  /// What the thread serves. All is called on that thread, or after its end.
  protocol Member: AnyObject, Sendable {
    var descriptor: Int32 { get }
    /// Does what can be done without waiting.
    ///
    /// - Parameter isReady: whether the descriptor has something.
    /// - Returns: the events of `poll` to wait for; nil: it has come to its end.
    func serve(isReady: Bool) -> Int16?
    /// Closes the descriptor.
    func end()
  }

  private let wake: Interruption
  private let state = Mutex(State())

  private struct State {
    var new: [any Member] = []
    var isStarted = false
    var isStopped = false
  }

  init() throws(PostgresError) { wake = try Interruption() }

  /// Serves one more.
  func add(_ member: any Member) {
    let (isTaken, begins) = state.withLock { state in
      if state.isStopped { return (false, false) }
      state.new.append(member)
      defer { state.isStarted = true }
      return (true, !state.isStarted)
    }
    guard isTaken else { return member.end() }
    if begins { start() }
    signal()
  }

  /// Has all served soon.
  func signal() { wake.set() }

  /// Ends all that is served, and the thread.
  func stop() {
    state.withLock { $0.isStopped = true }
    signal()
  }

  private func start() {
    let thread = Thread { [self] in run() }
    thread.name = "dendro-lines"
    thread.start()
  }

  private func run() {
    var members: [any Member] = []
    // The first is the event.
    var polled = [pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)]
    while true {
      _ = wake.clear()
      let (new, isStopped) = state.withLock { state in
        defer { state.new = [] }
        return (state.new, state.isStopped)
      }
      if isStopped {
        for member in members + new { member.end() }
        return
      }
      var kept: [any Member] = []
      var waits = [polled[0]]
      for (index, member) in (members + new).enumerated() {
        let isReady = index < members.count ? polled[index + 1].revents != 0 : true
        if let events = member.serve(isReady: isReady) {
          kept.append(member)
          waits.append(pollfd(fd: member.descriptor, events: events, revents: 0))
        } else {
          member.end()
        }
      }
      members = kept
      polled = waits
      // A second, so that what a member waits for in vain comes to its end.
      _ = poll(&polled, nfds_t(polled.count), 1000)
    }
  }
}
