package import DendroTree

/// Rules that need not be in force, and a request to try them with.
///
/// As JSON it has the member `rules`, a string, and those of a case of ``RuleTests`` but `name` and `expect`.
package struct RuleTrial {
  /// The text of the rules.
  package let rules: String
  private let members: TestMembers
  private let bytes: [UInt8]

  /// - Throws: ``RuleTextError`` if the text is no object of these members. The values of the others are looked at
  ///   later.
  package init(_ bytes: [UInt8]) throws(RuleTextError) {
    self.bytes = bytes
    do throws(TextFailure) {
      members = try TestMembers(
        TextParser.parse(bytes, .strict), known: RuleQuestion.members.union(["rules"]))
      guard let rules = try members.string("rules") else {
        throw TextFailure("Expected 'rules', a string.", at: members.start)
      }
      self.rules = rules
    } catch {
      throw error.error(in: bytes)
    }
  }

  /// Judges the request.
  ///
  /// - Parameters:
  ///   - data: the whole tree before.
  ///   - now: milliseconds since 1970, if the request does not say it.
  /// - Throws: ``RuleTextError`` if the request is none.
  package func verdict(
    by rules: Rules, about data: Node, now: Int64
  ) throws(RuleTextError) -> RuleVerdict {
    do throws(TextFailure) {
      let question = try RuleQuestion(members, in: bytes, about: data, now: now)
      return rules.decide(
        question.request, data: data, newData: question.newData, details: .trace)
    } catch {
      throw error.error(in: bytes)
    }
  }
}
