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
    let reason: String
    do throws(Unreadable) {
      first = RuleSet(compiling: try Self.text(of: path))
      reason = "is broken: \(Self.sentence(first.failure))"
    } catch {
      first = RuleSet(compiling: "")
      reason = error.reason
    }
    state = Mutex(State(current: first, version: version))
    guard first.rules == nil else { return }
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
    let text: String
    do throws(Unreadable) {
      text = try Self.text(of: path)
    } catch {
      report("\(name) \(error.reason) \(Self.consequence(old))")
      return false
    }
    if text == old.text, old.rules != nil { return false }
    let new = RuleSet(compiling: text)
    if let failure = new.failure {
      report("\(name) is broken: \(Self.sentence(failure)) \(Self.consequence(old))")
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

  /// What a file that cannot be used leaves in force.
  private static func consequence(_ old: RuleSet) -> String {
    old.rules == nil
      ? "Only administrators may read and write." : "The rules that it had stay in force."
  }

  /// Why there is no text.
  private struct Unreadable: Error {
    let reason: String
  }

  private static func text(of path: String) throws(Unreadable) -> String {
    let limit = RuleLimits.textBytes
    guard let bytes = BoundedFile.contents(of: path, byteLimit: limit, followsLink: true) else {
      throw Unreadable(
        reason: FileVersion(of: path).map { $0.byteCount > limit } ?? false
          ? "has more than \(limit) bytes." : "cannot be read.")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Unreadable(reason: "is not UTF-8.")
    }
    return text
  }
}
