/// How long a client waits before it connects again: not at all after the first loss, and longer from one failure to the
/// next.
package struct ReconnectDelay: Sendable {
  /// In seconds.
  private var longest = Self.first
  private var hasFailed = false
  /// Whether the next one is late, however long the last connection has lasted.
  private var isProlonged = false
  /// Whether it waits 30 seconds at most, in place of five minutes.
  package var isAdministrator = false
  private var limit: Double { isAdministrator ? 30 : 300 }

  private static let first = 1.0
  private static let factor = 1.3
  /// A connection that has lasted so many seconds makes the waiting begin anew.
  package static let lastingSeconds = 30.0

  package init() {}

  /// The next one begins at once.
  package mutating func reset() {
    longest = Self.first
    hasFailed = false
    isProlonged = false
  }

  /// The connection was refused for good reasons: the next one comes as late as possible.
  package mutating func prolong() {
    longest = limit
    hasFailed = true
    isProlonged = true
  }

  /// How many seconds to wait now.
  ///
  /// - Parameters:
  ///   - lasted: how many seconds the connection was ready; nil if it never was.
  ///   - random: from 0 to 1.
  package mutating func next(lasted: Double?, random: Double) -> Double {
    if !isProlonged, let lasted, lasted >= Self.lastingSeconds { reset() }
    isProlonged = false
    guard hasFailed else {
      hasFailed = true
      return 0
    }
    // Clients that have lost the same server do not come back at one moment.
    let delay = min(limit, longest) * (0.5 + random / 2)
    longest = min(limit, longest * Self.factor)
    return delay
  }
}
