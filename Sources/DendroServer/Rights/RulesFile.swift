import DendroRules
import Synchronization

/// The rules of a file as it is now. While the file is broken, the rules before stay in force; if it is broken from the
/// start, nothing is allowed to anybody but administrators.
final class RulesFile: RuleSource {
  let name: String
  private let path: String
  private let report: @Sendable (String) -> Void
  private let reader: BoundedFile.Reader
  private let state: Mutex<State>

  private struct State {
    var current: RuleSet
    /// Of the file at the last look.
    var version: FileVersion?
    /// Why it could not be read then; nil if it could.
    var refusal: Unreadable?
  }

  /// - Parameter reader: how the file is read.
  init(
    _ path: String, reader: @escaping BoundedFile.Reader = BoundedFile.contents,
    _ report: @escaping @Sendable (String) -> Void
  ) {
    self.path = path
    self.reader = reader
    self.report = report
    name = "the file \(path)"
    let version = FileVersion(of: path)
    let first: RuleSet
    let reason: String
    var refusal: Unreadable?
    do throws(Unreadable) {
      first = RuleSet(compiling: try Self.text(of: path, reader))
      reason = "is broken: \(Self.sentence(first.failure))"
    } catch {
      first = RuleSet(compiling: "")
      reason = error.reason
      refusal = error
    }
    state = Mutex(State(current: first, version: version, refusal: refusal))
    guard first.rules == nil else { return }
    report("\(name) \(reason) Until it is mended, only administrators may read and write.")
  }

  var current: RuleSet { state.withLock { $0.current } }

  func refresh() -> Bool {
    let version = FileVersion(of: path)
    let (old, isSame, refusal) = state.withLock { state in
      defer {
        state.version = version
        state.refusal = nil
      }
      return (state.current, state.version == version, state.refusal)
    }
    // What could not be read may be readable now, though nothing of it has changed: the process may have had no descriptor.
    if isSame, refusal == nil { return false }
    let text: String
    do throws(Unreadable) {
      text = try Self.text(of: path, reader)
    } catch {
      state.withLock { $0.refusal = error }
      if !isSame || error != refusal {
        report("\(name) \(error.reason) \(Self.consequence(old))")
      }
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
  private struct Unreadable: Error, Equatable {
    let reason: String
  }

  private static func text(
    of path: String, _ reader: BoundedFile.Reader
  ) throws(Unreadable) -> String {
    let limit = RuleLimits.textBytes
    guard let bytes = reader(path, limit, true) else {
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
