/// Random bytes from the system. Each system call gets eight of them.
struct RandomBytes {
  private var word: UInt64 = 0
  private var leftCount = 0
  private var generator = SystemRandomNumberGenerator()

  mutating func next() -> UInt8 {
    if leftCount == 0 {
      word = generator.next()
      leftCount = 8
    }
    defer {
      word >>= 8
      leftCount -= 1
    }
    return UInt8(truncatingIfNeeded: word)
  }
}
