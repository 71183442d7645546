import DendroRules
import Synchronization

/// The rules of a file as it is now. While the file is broken, the rules before stay in force; if it is broken from the
/// start, nothing is allowed to anybody but administrators.
final class RulesFile: RuleSource {
  let name: String
  private let path: String
  private let report: @Sendable (String) -> Void
  private let state: Mutex<State>

  private struct State {
    var current: RuleSet
    var version: FileVersion?
  }

  init(_ path: String, _ report: @escaping @Sendable (String) -> Void) {
    self.path = path
    self.report = report
    name = "the file \(path)"
    let version = FileVersion(of: path)
    let first: RuleSet
    if let text = Self.text(of: path) {
      first = RuleSet(compiling: text)
    } else {
      first = RuleSet(compiling: "")
    }
    state = Mutex(State(current: first, version: version))
    guard first.rules == nil else { return }
    let reason =
      version == nil ? "cannot be read." : "is broken: \(Self.sentence(first.failure))"
    report("\(name) \(reason) Until it is mended, only administrators may read and write.")
  }

  var current: RuleSet { state.withLock { $0.current } }

  func refresh() -> Bool {
    let version = FileVersion(of: path)
    let (old, isSame) = state.withLock { state in
      defer { state.version = version }
      return (state.current, state.version == version)
    }
    if isSame { return false }
    guard let text = Self.text(of: path) else {
      report("\(name) cannot be read. The rules that it had stay in force.")
      return false
    }
    if text == old.text, old.rules != nil { return false }
    let new = RuleSet(compiling: text)
    if let failure = new.failure {
      let consequence =
        old.rules == nil
        ? "Only administrators may read and write." : "The rules that it had stay in force."
      report("\(name) is broken: \(Self.sentence(failure)) \(consequence)")
      return false
    }
    state.withLock { $0.current = new }
    return true
  }

  /// What is wrong, with its place, as a sentence: some messages have no full stop.
  private static func sentence(_ failure: RuleTextError?) -> String {
    let text = failure?.description ?? ""
    return text.hasSuffix(".") ? text : text + "."
  }

  private static func text(of path: String) -> String? {
    BoundedFile.contents(of: path, byteLimit: RuleLimits.textBytes, followsLink: true)
      .flatMap { String(validating: $0, as: UTF8.self) }
  }
}
