import Testing

@testable import DendroEngine

@Suite("When a writer waits for readers")
struct AdaptiveWaitTests {
  /// The waits that are left out before the next one.
  private func leftOut(_ wait: inout AdaptiveWait) -> Int {
    var count = 0
    while !wait.isDue() { count += 1 }
    return count
  }

  @Test("after waits in vain 1, 3, 7 and then always 15 are left out")
  func inVain() {
    var wait = AdaptiveWait()
    #expect(leftOut(&wait) == 0)
    for count in [1, 3, 7, 15, 15] {
      wait.fail()
      #expect(leftOut(&wait) == count)
    }
  }

  @Test("one that was worth it begins anew")
  func worthIt() {
    var wait = AdaptiveWait()
    for _ in 0..<3 {
      wait.fail()
      _ = leftOut(&wait)
    }
    wait.succeed()
    #expect(leftOut(&wait) == 0)
    wait.fail()
    #expect(leftOut(&wait) == 1)
  }
}
