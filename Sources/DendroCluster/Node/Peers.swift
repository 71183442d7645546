/// Which openings of servers take part, as the leader sees them: one whose counter has stood still for too long, as often as
/// the leader has looked, does not.
struct Peers {
  private var seen: [String: Seen] = [:]
  /// When the counters were looked at last.
  private var lastLook = ContinuousClock.now

  private struct Seen {
    /// Nil for one that was asked for before it was seen.
    var counter: Int64?
    /// When it was seen to move; nil if it stood still when this server began to lead.
    var moved: ContinuousClock.Instant?
  }

  /// A row of the table of servers.
  struct Row: Sendable {
    let opening: String
    let counter: Int64
  }

  /// - Parameter gone: the server that led before and stood still; nil if it has left.
  init(gone: Row?) {
    if let gone { seen[gone.opening] = Seen(counter: gone.counter, moved: nil) }
  }

  /// - Parameter interval: between two looks, if PostgreSQL answers.
  mutating func note(_ rows: [Row], interval: Duration, now: ContinuousClock.Instant = .now) {
    // What the counters did meanwhile was not seen.
    let isLate = now - lastLook > interval * 2
    lastLook = now
    for row in rows where seen[row.opening]?.counter != row.counter {
      seen[row.opening] = Seen(counter: row.counter, moved: now)
    }
    for (opening, server) in seen where isLate && server.moved != nil {
      seen[opening]?.moved = now
    }
    // What is gone for so long is not asked for any more: what it has left is written.
    seen = seen.filter { _, server in server.moved.map { now - $0 < .seconds(3600) } ?? true }
  }

  /// Whether an opening has stood still for so long, or was not there. Of one that was never seen it is false at first.
  mutating func hasEnded(_ opening: String, after delay: Duration) -> Bool {
    guard let server = seen[opening] else {
      seen[opening] = Seen(counter: nil, moved: .now)
      return false
    }
    return server.moved.map { lastLook - $0 >= delay } ?? true
  }

  /// How many were seen to move lately.
  func liveCount(within delay: Duration) -> Int {
    seen.values.count { server in server.moved.map { lastLook - $0 < delay } ?? false }
  }
}
