import DendroRules
import DendroTestSupport
import Foundation
import Testing

/// Patterns at random, against the engine of Foundation.
@Suite("Patterns at random")
struct PatternRandomTests {
  private struct Grammar {
    var generator: SeededGenerator

    mutating func pattern() -> String {
      let begins = generator.oneIn(3) ? "^" : ""
      let ends = generator.oneIn(3) ? "$" : ""
      return begins + choice(3) + ends
    }

    private mutating func choice(_ depth: Int) -> String {
      (0...generator.below(3)).map { _ in sequence(depth) }.joined(separator: "|")
    }

    private mutating func sequence(_ depth: Int) -> String {
      (0...generator.below(3)).map { _ in repeated(depth) }.joined()
    }

    private mutating func repeated(_ depth: Int) -> String {
      let suffixes = ["", "", "", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}"]
      return atom(depth) + suffixes[generator.below(suffixes.count)]
    }

    private mutating func atom(_ depth: Int) -> String {
      if depth > 0, generator.oneIn(4) { return "(\(choice(depth - 1)))" }
      let atoms = [
        "a", "b", "c", "é", ".", "[ab]", "[^a]", "[a-c]", "\\d", "\\w", "\\S", "[^\\d]", "\\.", "1",
        "[\\W1]",
      ]
      return atoms[generator.below(atoms.count)]
    }

    mutating func text() -> String {
      let characters = ["a", "b", "c", "A", "1", ".", " ", "é", "😀"]
      return (0..<generator.below(8)).map { _ in characters[generator.below(characters.count)] }
        .joined()
    }
  }

  @Test("the same as Foundation says", arguments: 0..<8)
  func same(seed: UInt64) throws {
    var grammar = Grammar(generator: SeededGenerator(seed: seed))
    for _ in 0..<150 {
      let pattern = grammar.pattern()
      let ignoresCase = grammar.generator.oneIn(3)
      // Foundation's classes know Unicode; those of rules are ASCII.
      let ascii = pattern.replacing("\\w", with: "[a-zA-Z_0-9]").replacing("\\d", with: "[0-9]")
        .replacing("[[0-9]", with: "[0-9").replacing("[^[0-9]]", with: "[^0-9]")
        .replacing("[\\W1]", with: "[^a-zA-Z_02-9]").replacing("\\S", with: "[^ ]")
      let expected = try NSRegularExpression(
        pattern: ascii, options: ignoresCase ? .caseInsensitive : [])
      let rules = try Rules(rulesText("data.val().matches(/\(pattern)/\(ignoresCase ? "i" : ""))"))
      for _ in 0..<12 {
        let text = grammar.text()
        let range = NSRange(location: 0, length: text.utf16.count)
        let isMatch = expected.firstMatch(in: text, range: range) != nil
        let request = try RuleRequest(reading: "p", now: 0)
        let data = try JSONTree("{\"p\":\(quotedJSON(text))}")
        #expect(
          rules.decide(request, data: data).isAllowed == isMatch,
          "seed \(seed): \(pattern) \(ignoresCase ? "i" : "") in «\(text)»")
      }
    }
  }

  @Test("any text is a pattern or is refused", arguments: 0..<4)
  func damage(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let pieces = [
      "(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "^", "$", "\\", "-", ",", "1", "99", "a",
      ".", "é", "\\d", "{2,3}", "[^",
    ]
    for _ in 0..<1_500 {
      let pattern = (0..<generator.below(12)).map { _ in pieces[generator.below(pieces.count)] }
        .joined()
      _ = refusal(of: "'aab1'.matches(/\(pattern)/)")
      _ = try? allows("'aab1é'.matches(/\(pattern)/)")
    }
  }
}
