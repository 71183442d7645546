import DendroProtocol
import Testing

@Suite("delays between connections")
struct ReconnectDelayTests {
  /// The delays of connections that are never ready.
  private func delays(_ delay: inout ReconnectDelay, _ count: Int, random: Double = 1) -> [Double] {
    (0..<count).map { _ in delay.next(lasted: nil, random: random) }
  }

  @Test("the first loss is followed at once, then delays grow from one second to five minutes")
  func growth() {
    var delay = ReconnectDelay()
    let delays = delays(&delay, 30)
    #expect(delays[..<2] == [0, 1])
    for (one, next) in zip(delays[1...], delays[2...]) {
      #expect(next == min(300, one * 1.3))
    }
    #expect(delays.last == 300)
  }

  @Test("an administrator waits 30 seconds at most")
  func administrator() {
    var delay = ReconnectDelay()
    delay.isAdministrator = true
    #expect(delays(&delay, 30).suffix(10) == Array(repeating: 30, count: 10)[...])
    delay.isAdministrator = false
    #expect(delays(&delay, 30).last == 300)
    delay.isAdministrator = true
    #expect(delays(&delay, 1) == [30])
  }

  @Test("chance takes up to half of a delay away")
  func chance() {
    for (random, first) in [(0, 0.5), (0.5, 0.75), (1, 1)] {
      var delay = ReconnectDelay()
      #expect(delays(&delay, 2, random: random) == [0, first])
      #expect(delays(&delay, 30, random: random).last == 300 * first)
    }
  }

  @Test("a connection that was ready for 30 seconds makes the delays begin anew, a shorter one not")
  func lasting() {
    var delay = ReconnectDelay()
    _ = delays(&delay, 10)
    let before = delay.next(lasted: 29.9, random: 1)
    #expect(before > 9)
    #expect(delay.next(lasted: 0, random: 1) > before)
    #expect(delay.next(lasted: 30, random: 1) == 0)
    #expect(delays(&delay, 2) == [1, 1.3])
  }

  @Test("a reset makes the delays begin anew")
  func reset() {
    var delay = ReconnectDelay()
    _ = delays(&delay, 10)
    delay.reset()
    #expect(delays(&delay, 3) == [0, 1, 1.3])
    delay.prolong()
    delay.reset()
    #expect(delay.next(lasted: nil, random: 1) == 0)
  }

  @Test(
    "a connection that is refused for good reasons is followed as late as possible, though it lasted",
    arguments: [nil, 1, 1000] as [Double?])
  func prolonged(lasted: Double?) {
    for isAdministrator in [false, true] {
      var delay = ReconnectDelay()
      delay.isAdministrator = isAdministrator
      delay.prolong()
      #expect(delay.next(lasted: lasted, random: 1) == (isAdministrator ? 30 : 300))
      #expect(delay.next(lasted: 30, random: 1) == 0)
    }
  }
}
