/// Makes child keys in the order of their making: 20 characters, of which the first 8 are the time
/// in milliseconds and the other 12 are random.
///
/// Not thread-safe: its owner locks it.
package struct PushIDGenerator: Sendable {
  private static let alphabet = Array(
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)
  private static let timeMax: Int64 = (1 << 48) - 1

  private var lastTime: Int64 = -1
  /// The 12 last digits, the most significant first.
  private var tail: [UInt8] = Array(repeating: 0, count: 12)

  package init() {}

  /// The next id, greater than all before: when the clock steps back, the last time goes on.
  ///
  /// Within one millisecond the tail counts up from its random start; should it ever overflow, the
  /// id is one of the next millisecond.
  ///
  /// - Parameters:
  ///   - now: milliseconds since 1970; held between 0 and 2^48 − 1.
  ///   - random: 64 random bits a call; called twice for each new millisecond.
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

  /// Adds one; false if all digits were the greatest.
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
