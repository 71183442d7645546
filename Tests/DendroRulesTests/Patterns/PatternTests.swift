import DendroRules
import DendroTestSupport
import Foundation
import Testing

/// The regular expressions of `matches()`.
@Suite("Patterns")
struct PatternTests {
  /// - Throws: if the pattern is refused.
  static func matches(_ text: String, _ pattern: String) throws -> Bool {
    try allows("data.val().matches(\(pattern))", quotedJSON(text))
  }

  @Test(
    "matches",
    arguments: [
      ("/b/", "abc"), ("/^a/", "abc"), ("/c$/", "abc"), ("/^abc$/", "abc"), ("/^$/", ""),
      ("/^/", "a"),
      ("/$/", "a"), ("/a*/", ""), ("/^a*$/", ""), ("/^a+$/", "aaa"), ("/^ab?c$/", "ac"),
      ("/^ab?c$/", "abc"),
      ("/^a{2}$/", "aa"), ("/^a{2,}$/", "aaaa"), ("/^a{1,3}$/", "aaa"), ("/^a{0,1}$/", ""),
      ("/^a{0}$/", ""),
      ("/^(ab)+$/", "abab"), ("/^(a|b)+$/", "abba"),
      ("/^(a|bc|)$/".replacing("|)", with: ")"), "bc"),
      ("/^a|b$/", "axx"), ("/^a|b$/", "xxb"), ("/a|b|c/", "c"), ("/./", "x"), ("/^.{3}$/", "é😀x"),
      ("/^[a-c]+$/", "abc"), ("/^[^a-c]+$/", "xyz😀"), ("/^[-a]+$/", "-a-"), ("/^[a-]+$/", "-a-"),
      ("/^[\\\\]\\-]+$/".replacing("\\\\", with: "\\"), "]-"),
      ("/^[.*+?()|{}$^]+$/", ".*+?()|{}$^"),
      ("/^\\d+$/", "0123456789"), ("/^\\w+$/", "aZ_09"), ("/^\\s+$/", " \t\n\r\u{B}\u{C}"),
      ("/^\\D\\W\\S$/", "a-b"),
      ("/^[\\d_]+$/", "1_2"), ("/^[^\\d]+$/", "abc"), ("/^[\\D1]+$/", "a1"),
      ("/^\\.\\*\\/\\\\$/", ".*/\\"),
      ("/\\{a}/", "{a}"), ("/^a]}$/", "a]}"), ("/^\\é$/", "é"), ("/[/]/", "a/b"), ("/B/i", "abc"),
      ("/[B-D]/i", "c"), ("/[b-d]/i", "C"), ("/σ/i", "Σ"), ("/Σ/i", "σ"),
      ("/^É$/i", "é"), ("/^[^b]$/i", "a"), ("/|a/", "|a"), ("/)a/", ")a"), ("/(/", "("),
      ("/?/", "?"),
      ("/+/", "+"), ("/}/", "}"), ("/{/", "{"), ("/*/", "*"), ("/^()a)$/", ")a"),
      ("/^(*|b)$/", "*"),
      ("/^((a|b)(c|d))*$/", "acbd"), ("/^(a*)*$/", "aaa"), ("/^(a+)+b$/", "aaab"),
      ("/(a|ab)(c|bcd)(d*)/", "abcd"),
      ("/^(a{2}){3}$/", "aaaaaa"), ("/^[a-z0-9.]+@[a-z]+\\.[a-z]{2,}$/i", "Ann.1@Example.org"),
      ("/^(0|[1-9][0-9]*)$/", "10"), ("/é/", "cafés"), ("/\u{301}/", "e\u{301}"),
    ] as [(String, String)])
  func matching(pattern: String, text: String) throws { #expect(try Self.matches(text, pattern)) }

  @Test(
    "does not match",
    arguments: [
      ("/^b/", "abc"), ("/b$/", "abc"), ("/^$/", "a"), ("/^a+$/", ""), ("/^a{2}$/", "aaa"),
      ("/^a{2,}$/", "a"),
      ("/^a{1,3}$/", "aaaa"), ("/^a{0}$/", "a"), ("/^a|b$/", "xab "), ("/^.$/", "\n"),
      ("/^.$/", "\u{2028}"),
      ("/^.$/", "ab"), ("/[a-c]/", "xyz"), ("/[^a-c]/", "abc"), ("/B/", "abc"), ("/^[^b]$/i", "B"),
      ("/^\\d$/", "٣"), ("/^\\w$/", "é"), ("/^\\s$/", "\u{A0}"), ("/^(a+)+b$/", "aaac"),
      ("/^a$/", "a\n"),
      ("/\u{e9}/", "e\u{301}"), ("/^x/", ""), ("/(a|b)c/", "ab"), ("/k/i", "\u{212A}"),
      ("/K/i", "\u{212A}"), ("/\u{212A}/i", "k"), ("/S/i", "ſ"), ("/s/i", "ſ"), ("/I/i", "ı"),
    ])
  func notMatching(pattern: String, text: String) throws {
    #expect(try !Self.matches(text, pattern))
  }

  @Test(
    "what is refused",
    arguments: [
      "/(^a$|b)/", "/^(a|)$/", "/a||b/", "/a|/", "/a**/", "/a+?/", "/a{,3}/", "/a{2/", "/a{x}/",
      "/a{3,2}/",
      "/a^b/", "/a$b/", "/(a)(b/", "/a)/", "/[]/", "/[^]/", "/[b-a]/", "/[a-\\d]/", "/^*/", "/a|*/",
      "/(a$)/", "/a(?:b)(/",
      "/a{1025}/", "/(a{100}){100}/",
      "/((((((((a{0}){1000}){1000}){1000}){1000}){1000}){1000}){1000})/",
    ])
  func refused(pattern: String) {
    let message = refusal(of: "'a'.matches(\(pattern))")
    #expect(message?.hasPrefix("Invalid regular expression: ") == true)
  }

  @Test("nesting is bounded")
  func nesting() {
    let deep = String(repeating: "(", count: 50_000) + "a" + String(repeating: ")", count: 50_000)
    #expect(
      refusal(of: "'a'.matches(/\(deep)/)")
        == "Invalid regular expression: groups are nested more than 100 levels deep.")
  }

  @Test("all patterns together are bounded")
  func together() {
    let one = "'a'.matches(/a{1000}/) || "
    #expect(
      refusal(of: String(repeating: one, count: 1_000) + "true")
        == "The regular expressions of these rules are too large.")
  }

  @Test("no pattern takes more than linear time: steps say so")
  func linear() throws {
    let text = String(repeating: "a", count: 20_000)
    let expression = "!data.val().matches(/^(a+)+(a|aa)*(a*)*b$/)"
    let short = try decide(expression, quotedJSON(String(text.prefix(10_000))))
    let long = try decide(expression, quotedJSON(text))
    #expect(short.isAllowed && long.isAllowed)
    #expect(long.stepCount < 3 * short.stepCount)
    #expect(try !allows("data.val().matches(/a{0,1000}b/)", quotedJSON(text)))
  }
}
