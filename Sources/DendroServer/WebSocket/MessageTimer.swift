/// Finds a message that takes too long to come. Looked at again and again, about once a second.
struct MessageTimer: Sendable {
  private var last: ContinuousClock.Instant?
  private var elapsed = Duration.zero
  private var number = 0
  /// The least bytes a second of a message that takes longer than the limit.
  private static let rate = 4096

  /// - Parameters:
  ///   - number: how many messages have come before this one.
  ///   - byteCount: what there is of it; nil if none is under way.
  ///   - isRead: whether the server takes what the client sends; other time does not count.
  mutating func isOverdue(
    _ now: ContinuousClock.Instant, number: Int, byteCount: Int?, isRead: Bool, limit: Duration
  ) -> Bool {
    defer { last = now }
    guard let byteCount, number == self.number else {
      self.number = number
      elapsed = .zero
      return false
    }
    if isRead, let last { elapsed += now - last }
    return elapsed > limit + .seconds(byteCount / Self.rate)
  }
}
