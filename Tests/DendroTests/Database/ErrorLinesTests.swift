import Testing

@testable import Dendro

@Suite("Errors on standard error")
struct ErrorLinesTests {
  private let start = ContinuousClock.now

  @Test("of equal ones in a row, one a second is written, and the 10th, 100th, … with their count")
  func equal() {
    var lines = ErrorLines()
    for _ in 0..<150 { lines.add("refused", at: start) }
    #expect(lines.take() == ["refused", "refused (10 times)", "refused (100 times)"])
    lines.add("refused", at: start + .milliseconds(999))
    #expect(lines.isEmpty)
    lines.add("refused", at: start + .seconds(1))
    #expect(lines.take() == ["refused (152 times)"])
    lines.add("another", at: start + .seconds(1))
    lines.add("refused", at: start + .seconds(1))
    #expect(lines.take() == ["another", "refused"])
  }

  @Test("more than wait are counted")
  func many() {
    var lines = ErrorLines()
    for number in 0..<300 { lines.add("\(number)", at: start) }
    let taken = lines.take()
    #expect(taken.count == 257 && taken.last == "44 more errors, left out here")
    #expect(lines.take().isEmpty)
  }

  @Test("what a terminal obeys is escaped")
  func escaped() {
    #expect("a\u{1B}[31m\nb\u{7}\u{202E}".onOneLine == #"a\u{1b}[31m\u{a}b\u{7}\u{202e}"#)
    #expect("grüße 👍🏽".onOneLine == "grüße 👍🏽")
  }
}
