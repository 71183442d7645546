import Testing

@testable import DendroCluster

@Suite("Pauses between attempts")
struct PausesTests {
  @Test("the wait for an answer grows only if none came, and once all hosts were asked")
  func timeouts() {
    var now = ContinuousClock.now
    var pauses = Pauses(.seconds(5), hostCount: 2, now: now)
    /// Fails so long after it has begun.
    func fail(after duration: Duration) {
      now += duration
      now += pauses.failed(now: now)
    }
    for _ in 0..<20 { fail(after: .milliseconds(10)) }
    #expect(pauses.timeout == .seconds(5))
    for expected in [5, 10, 10, 20, 20, 40] {
      fail(after: pauses.timeout)
      #expect(pauses.timeout == .seconds(expected))
    }
    fail(after: .seconds(39))
    #expect(pauses.timeout == .seconds(40))
    for _ in 0..<20 { fail(after: pauses.timeout) }
    #expect(pauses.timeout == .seconds(320))
    pauses.succeeded(now: now)
    #expect(pauses.timeout == .seconds(5))
  }

  @Test("attempts follow one another more slowly, up to two seconds")
  func pauses() {
    var pauses = Pauses(.seconds(5))
    let waits = (0..<9).map { _ in pauses.failed() }
    #expect(waits == [20, 40, 80, 160, 320, 640, 1280, 2000, 2000].map { .milliseconds($0) })
  }
}
