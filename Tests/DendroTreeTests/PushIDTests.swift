import DendroTree
import Testing

@Suite struct PushIDTests {
  @Test(
    "the first eight characters are the time",
    arguments: [
      (0, "--------"), (1, "-------0"), (63, "-------z"), (64, "------0-"), (4096, "-----0--"),
      (1_700_000_000_000, "-NjEtLV-"), (1_700_000_000_001, "-NjEtLV0"), ((1 << 48) - 1, "zzzzzzzz"),
      (-5, "--------"), (.max, "zzzzzzzz"),
    ] as [(Int64, String)])
  func time(now: Int64, prefix: String) {
    var generator = PushIDGenerator()
    let id = generator.next(now: now) { 0 }
    #expect(id == prefix + "------------")
  }

  @Test("within a millisecond the tail counts up; a step back of the clock does not show")
  func monotonic() throws {
    var generator = PushIDGenerator()
    var bits: UInt64 = 0x9E37_79B9_7F4A_7C15
    var last = ""
    for step in 0..<2_000 {
      let now = Int64(1_700_000_000_000 + step / 10 - (step % 7 == 0 ? 5 : 0))
      let id = generator.next(now: now) {
        bits = bits &* 6_364_136_223_846_793_005 &+ 1
        return bits
      }
      #expect(id.utf8.count == 20)
      #expect(last.utf8.lexicographicallyPrecedes(id.utf8))
      if step > 0 { #expect(try Key(last) < Key(id)) }
      last = id
    }
  }

  @Test("the next id of a millisecond is one more, with carry")
  func carry() {
    var generator = PushIDGenerator()
    // Six digits a number, the first one lowest: 38 is `a`, 63 is `z`.
    let digits: [UInt64] = [38, 38, 38, 38, 38, 63]
    let bits = digits.enumerated().reduce(0) { $0 | $1.element << UInt64(6 * $1.offset) }
    #expect(generator.next(now: 0) { bits } == "--------aaaaazaaaaaz")
    #expect(generator.next(now: 0) { 0 } == "--------aaaaazaaaab-")
    #expect(generator.next(now: 0) { 0 } == "--------aaaaazaaaab0")
  }

  @Test("a full tail continues in the next millisecond")
  func overflow() {
    var generator = PushIDGenerator()
    #expect(generator.next(now: 63) { .max } == "-------zzzzzzzzzzzzz")
    #expect(generator.next(now: 63) { 0 } == "------0-------------")
    #expect(generator.next(now: 63) { 0 } == "------0------------0")
  }
}
