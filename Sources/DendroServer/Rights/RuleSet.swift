import DendroRules
import Synchronization

/// The rules that are in force, for one database or for all of a server.
final class RuleSet: Sendable {
  /// Nil for rules that cannot be compiled: nothing is allowed then.
  let rules: Rules?
  /// The text that was given.
  let text: String
  /// Why there are no rules, with line and column; nil if there are.
  let failure: RuleTextError?

  init(_ rules: Rules) {
    self.rules = rules
    text = rules.text
    failure = nil
  }

  /// Compiles rules. If they are wrong, nothing is allowed.
  init(compiling text: String) {
    self.text = text
    do throws(RuleTextError) {
      rules = try Rules(text)
      failure = nil
    } catch {
      rules = nil
      failure = error
    }
  }
}

/// Rules for all databases of a server, in place of their own.
protocol RuleSource: AnyObject, Sendable {
  /// The rules in force.
  var current: RuleSet { get }
  /// Where they come from, for a sentence: `the file rules.json`.
  var name: String { get }
  /// Called once a second.
  ///
  /// - Returns: whether the rules have changed.
  func refresh() -> Bool
}

/// Rules that a program gives.
final class GivenRules: RuleSource {
  let current: RuleSet

  init(_ rules: Rules) { current = RuleSet(rules) }

  var name: String { "the program that runs this server" }
  func refresh() -> Bool { false }
}
