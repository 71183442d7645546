@testable import DendroRules
import DendroTree
import Testing

@Suite("rules: trials, and what is said of them as JSON")
struct RuleTrialTests {
  @Test("a verdict with its trace")
  func verdict() throws {
    let text =
      #"{"rules":{"a":{".write":"auth.uid === 'ann' && data.val() + 1 == newData.val()"}}}"#
    let members = #""as":{"sub":"ann"},"operation":"set","path":"a","value":"\"""#
    let trial = try RuleTrial(Array("{\"rules\":\"\",\(members)}".utf8))
    #expect(trial.rules == "")
    let verdict = try trial.verdict(by: Rules(text), about: .empty, now: 7)
    #expect(!verdict.isAllowed)
    #expect(
      verdict.json.hasPrefix(
        #"{"allowed":false,"steps":\#(verdict.stepCount),"rules":[{"path":"/a","rule":"/a","kind":".write","#
          + #""line":1,"column":"#), "\(verdict.json)")
    #expect(verdict.json.contains(#""result":"failed","reason":""#))
    #expect(verdict.json.contains(#""source":"auth.uid","value":"\"ann\"""#))
    #expect(verdict.json.hasSuffix(#"]}],"omitted":0}"#))
  }

  @Test("the moment is that of the request, or else that of the caller")
  func now() throws {
    let rules = try Rules(#"{"rules":{".read":"now == 7"}}"#)
    for (member, now, isAllowed) in [("", 7, true), ("", 8, false), (#","now":7"#, 8, true)] {
      let trial = try RuleTrial(Array(#"{"rules":"","operation":"read"\#(member)}"#.utf8))
      #expect(
        try trial.verdict(by: rules, about: .empty, now: Int64(now)).isAllowed == isAllowed)
    }
  }

  @Test(
    "what is no trial", arguments: ["", "7", "{}", #"{"rules":1}"#, #"{"rules":"","name":""}"#])
  func malformed(text: String) {
    #expect(throws: RuleTextError.self) { try RuleTrial(Array(text.utf8)) }
  }
}
