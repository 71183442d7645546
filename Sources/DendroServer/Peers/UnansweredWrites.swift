import Synchronization

/// The writes that this server makes for its clients and that have no answer yet, if several servers have the database.
///
/// Such a write waits for PostgreSQL. A client waits for 30 seconds at most: then it learns that the outcome is not known, and the
/// write may be made all the same.
final class UnansweredWrites: Sendable {
  typealias ID = Int

  private struct Write {
    let deadline: ContinuousClock.Instant
    let giveUp: @Sendable () -> Void
  }

  private struct State {
    var lastID = 0
    var writes: [ID: Write] = [:]
  }

  static let patience = Duration.seconds(30)
  private let state = Mutex(State())

  /// - Parameter giveUp: called once if the write has not been removed in time. It may be called while it is removed.
  func add(_ giveUp: @escaping @Sendable () -> Void) -> ID {
    let write = Write(deadline: .now + Self.patience, giveUp: giveUp)
    return state.withLock { state in
      state.lastID += 1
      state.writes[state.lastID] = write
      return state.lastID
    }
  }

  var count: Int { state.withLock { $0.writes.count } }

  /// Notes that a write has an answer.
  func remove(_ id: ID) {
    // What is given up is freed without the lock.
    _ = state.withLock { $0.writes.removeValue(forKey: id) }
  }

  /// Gives up the writes whose time is over. Called once a second.
  func giveUpOverdue(now: ContinuousClock.Instant = .now) {
    let overdue = state.withLock { state in
      let overdue = state.writes.filter { $0.value.deadline <= now }
      for id in overdue.keys { state.writes[id] = nil }
      return overdue.values.map(\.giveUp)
    }
    for giveUp in overdue { giveUp() }
  }
}
