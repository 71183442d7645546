/// Generates child keys that sort in the order of their generation. A key has 20 characters: the first 8
/// are the time in milliseconds, the other 12 are random.
///
/// Not thread-safe; the owner protects it with a lock.
package struct PushIDGenerator: Sendable {
  private static let alphabet = Array(
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)
  private static let timeMax: Int64 = (1 << 48) - 1

  private var lastTime: Int64 = -1
  /// The last 12 digits, the most significant first.
  private var tail: [UInt8] = Array(repeating: 0, count: 12)

  package init() {}

  /// Returns the next id, which is greater than all before. If the clock steps back, the last time is used
  /// again.
  ///
  /// Within one millisecond the random part is incremented. If it overflows, the id gets the time of the
  /// next millisecond.
  ///
  /// - Parameters:
  ///   - now: milliseconds since 1970, clamped to 0…2^48 − 1.
  ///   - random: returns 64 random bits; called twice for each new millisecond.
  package mutating func next(now: Int64, random: () -> UInt64) -> String {
    let time = max(lastTime, min(max(now, 0), PushIDGenerator.timeMax))
    if time != lastTime {
      lastTime = time
      draw(random)
    } else if !increment() {
      lastTime = min(time + 1, PushIDGenerator.timeMax)
      draw(random)
    }
    var characters = [UInt8](repeating: 0, count: 20)
    for index in 0..<8 {
      characters[index] = PushIDGenerator.alphabet[Int(lastTime >> Int64(42 - 6 * index)) & 63]
    }
    for index in 0..<12 { characters[8 + index] = PushIDGenerator.alphabet[Int(tail[index])] }
    return String(decoding: characters, as: UTF8.self)
  }

  private mutating func draw(_ random: () -> UInt64) {
    for half in 0..<2 {
      var bits = random()
      for index in 0..<6 {
        tail[6 * half + index] = UInt8(bits & 63)
        bits >>= 6
      }
    }
  }

  /// Increments the random part. Returns false if it overflows.
  private mutating func increment() -> Bool {
    for index in tail.indices.reversed() {
      if tail[index] < 63 {
        tail[index] += 1
        return true
      }
      tail[index] = 0
    }
    return false
  }
}
