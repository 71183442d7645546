/// When a writer that meets readers waits for them.
///
/// A wait in vain costs its time, and the copies all the same: so after one in vain the next is left out, after two in
/// a row the next 3, then 7, and then 15. One that was worth it begins anew, since those who read long come and go.
struct AdaptiveWait {
  /// The waits that are left out after the next one in vain, and those that still are.
  private var leftOutNext = 1
  private var leftOut = 0
  private static let leftOutMax = 15

  /// Whether it waits this time. `succeed` or `fail` has to follow then.
  mutating func isDue() -> Bool {
    if leftOut == 0 { return true }
    leftOut -= 1
    return false
  }

  /// Notes that the readers have ended meanwhile.
  mutating func succeed() { leftOutNext = 1 }

  /// Notes that they have not.
  mutating func fail() {
    leftOut = leftOutNext
    leftOutNext = min(2 * leftOutNext + 1, Self.leftOutMax)
  }
}
