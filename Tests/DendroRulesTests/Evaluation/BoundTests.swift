import DendroRules
import DendroTestSupport
import Foundation
import Testing

/// What hostile rules, data and requests may take.
@Suite("Bounds")
struct BoundTests {
  @Test("an expression without end of steps is false, and the trace says so")
  func steps() throws {
    let long = String(repeating: "a", count: 3_000_000)
    let expression = (0..<60).map { "data.val().contains('\($0)')" }.joined(separator: " || ")
    let verdict = try decide(expression, quotedJSON(long), details: .trace)
    #expect(!verdict.isAllowed)
    #expect(verdict.stepCount == RuleLimits.steps)
    #expect(
      verdict.trace?.evaluations.first?.outcome
        == .failed("The verdict took more steps than it may."))
  }

  @Test("a verdict may take further steps for each location that is written and validated")
  func manyNodes() throws {
    let children = { (count: Int) in
      "{" + (0..<count).map { "\"k\($0)\":1" }.joined(separator: ",") + "}"
    }
    let many = children(110_000)
    let quick = "{\".write\": true, \"a\": {\"$k\": {\".validate\": true}}}"
    #expect(try Bench(quick).set("a", many))
    // A priority leaves the rest as it was, however much that is.
    #expect(try !Bench(quick, "{\"a\": \(many)}").setPriority("a", "1"))
    #expect(try Bench(quick, "{\"a\": \(children(40_000))}").setPriority("a", "1"))

    let long = Array(repeating: "newData.isNumber()", count: 100).joined(separator: " && ")
    let bench = try Bench("{\".write\": true, \"a\": {\"$k\": {\".validate\": \"\(long)\"}}}")
    #expect(try bench.set("a", children(400)))
    let verdict = try bench.setting("a", children(4_000), .trace)
    #expect(!verdict.isAllowed)
    #expect(verdict.stepCount <= RuleLimits.steps + 4_000 * RuleLimits.stepsPerLocation)
    // Where nothing is validated, nothing is counted.
    #expect(try bench.set("b", many))
    let entries = (0..<20_000).map { "k\($0)" }
    let number = "newData.isNumber() && newData.val() > 0"
    let each = "{\".write\": true, \"a\": {\"$k\": {\".validate\": \"\(number)\"}}}"
    #expect(try Bench(each).update("a", entries, children(20_000)))
  }

  @Test("long strings are compared, measured and searched; what rules make of them is bounded")
  func longStrings() throws {
    let text = quotedJSON(String(repeating: "ab", count: 4 << 20))
    #expect(try allows("data.val() == data.val() && data.val().length == 8388608", text))
    #expect(try allows("!data.val().contains('ba' + 'c') && data.val().endsWith('ab')", text))
    let verdict = try decide("data.val() + data.val() == ''", text, details: .trace)
    #expect(
      verdict.trace?.evaluations.first?.outcome
        == .failed("The string is longer than 10485760 bytes."))
    let replaced = try decide(
      "data.val().replace('a', 'cccc') == ''", text, details: .trace)
    #expect(
      replaced.trace?.evaluations.first?.outcome
        == .failed("The string is longer than 10485760 bytes."))
    #expect(try !allows("data.val().matches(/z/)", text))
  }

  @Test("searching takes linear time", arguments: ["contains", "replace"])
  func search(method: String) throws {
    let text = String(repeating: "a", count: 1 << 20)
    let pattern = String(text.prefix(100_000)) + "b"
    let call =
      method == "replace"
      ? "replace('\(pattern)', '').length == 1048576" : "contains('\(pattern)') == false"
    #expect(try allows("data.val().\(call)", quotedJSON(text)))
  }

  @Test("deep locations fail")
  func depth() throws {
    let path = String(repeating: "a/", count: 100)
    let verdict = try decide("data.child('\(path)').exists()", details: .trace)
    #expect(
      verdict.trace?.evaluations.first?.outcome
        == .failed("The location is deeper than 100 keys."))
    #expect(try !allows("data.child('\(path.dropLast(2))').exists()"))
    let chain = String(repeating: ".child('a')", count: 20_000)
    #expect(try !allows("data\(chain).exists()"))
    let back = String(repeating: ".child('a').parent()", count: 10_000)
    #expect(try allows("data\(back).exists()", "1"))
  }

  @Test("many locations of one update share what is above them")
  func updates() throws {
    let bench = try Bench(
      """
      {"a": {".write": "auth == null", ".validate": "newData.hasChildren()",
       "$k": {".validate": "newData.isNumber() && $k.length > 1"}}}
      """)
    let keys = (0..<5_000).map { "k\($0)" }
    let value = "{" + keys.map { "\"\($0)\":1" }.joined(separator: ",") + "}"
    #expect(try bench.update("a", keys, value))
  }

  @Test("names, numbers and nesting")
  func names() {
    let name = String(repeating: "a", count: 769)
    #expect(refusal(of: name) == "The name is longer than 768 bytes.")
    #expect(refusal(of: String(name.dropLast())) == "Unknown variable '\(name.dropLast())'.")
    for (opening, closing) in [
      ("(", ")"), ("!(", ")"), ("data.child(", ")"), ("auth[", "]"), ("true ? (", ") : true"),
    ] {
      let count = 10_000
      let deep =
        String(repeating: opening, count: count) + "true" + String(repeating: closing, count: count)
      #expect(
        refusal(of: deep) == "The expression is nested more than 100 levels deep.", "\(opening)")
    }
    let conditions = String(repeating: "true ? true : ", count: 10_000) + "true"
    #expect(refusal(of: conditions) == nil)
    let signs = String(repeating: "!", count: 100_000) + "true"
    #expect(refusal(of: signs) == nil)
  }

  @Test("the deepest rules and expressions do with a thread's 512 KB")
  func smallStack() async {
    let deep = String(repeating: "(", count: 95) + "true" + String(repeating: ")", count: 95)
    let levels = (0..<11).reduce("true") { inner, _ in
      "(1*(1+(1)) < 2 == true && true || \(inner) ? !(\(inner.count > 900 ? "true" : inner)) : false)"
    }
    let names = (0..<95).map { $0 % 2 == 0 ? "a" : "$n\($0)" }
    let path = names.map { $0.first == "$" ? "k" : "a" }
    let rules = rulesText("newData.exists()", .validate, at: names)
    let granted = rules.replacing("{\"rules\": {", with: "{\"rules\": {\".write\": true, ")
    let value = path.prefix(31).reversed().reduce("1") { "{\(quotedJSON($1)):\($0)}" }
    let result = await onThread(stackSize: 512 << 10) {
      let isRefused = refusal(of: deep) != nil || refusal(of: levels) != nil
      let bench = try? Rules(granted)
      let tree = try? JSONTree(value)
      let request = try? RuleRequest(setting: "", now: 0)
      guard let bench, let tree, let request else { return false }
      let verdict = bench.decide(
        request, data: tree, newData: tree, details: [.trace, .observations])
      return !isRefused && verdict.isAllowed
    }
    #expect(result)
  }

  private func onThread(stackSize: Int, _ body: @escaping @Sendable () -> Bool) async -> Bool {
    await withCheckedContinuation { continuation in
      let thread = Thread { continuation.resume(returning: body()) }
      thread.stackSize = stackSize
      thread.start()
    }
  }
}
