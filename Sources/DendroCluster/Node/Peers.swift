/// Which openings of servers take part, as the leader sees them: one whose counter has stood still for too long does not.
struct Peers {
  /// Since when this server leads and looks.
  private let begun = ContinuousClock.now
  private var seen: [String: Seen] = [:]

  private struct Seen {
    var counter: Int64
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

  mutating func note(_ rows: [Row]) {
    let now = ContinuousClock.now
    for row in rows where seen[row.opening]?.counter != row.counter {
      seen[row.opening] = Seen(counter: row.counter, moved: now)
    }
    // What is gone for so long is not asked for any more: what it has left is written.
    seen = seen.filter { now - ($0.value.moved ?? begun) < .seconds(3600) }
  }

  /// Whether an opening has stood still for so long, or was not there.
  func hasEnded(_ opening: String, after delay: Duration) -> Bool {
    guard let seen = seen[opening] else { return .now - begun >= delay }
    return seen.moved.map { .now - $0 >= delay } ?? true
  }
}
