import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

/// What `/.settings/` has for one database: kept in its second root, and hence in backups and not in exports.
///
/// | path in the second root | value |
/// | --- | --- |
/// | `settings/NAME` | a string: the text that was put last |
final class NamespaceSettings: Sendable {
  private let engine: Engine
  private let state: Mutex<State>
  /// Held while the second root is looked at for what others have put. Taken before the lock of the state.
  private let looks = Mutex(())
  /// Whether rules have changed that `refresh()` has not told.
  private let hasChanged = Atomic<Bool>(false)

  private struct State {
    /// The texts, as children of one node.
    var pages: Node
    var rules: RuleSet?
    /// How often this server has put something.
    var putCount = 0

    /// Takes over the texts of others.
    ///
    /// - Returns: whether the rules have changed.
    mutating func take(_ pages: Node) -> Bool {
      if pages.isIdentical(to: self.pages) || pages == self.pages { return false }
      self.pages = pages
      if NamespaceSettings.text(NamespaceSettings.rulesName, pages) == rules?.text { return false }
      rules = NamespaceSettings.rules(pages)
      return true
    }
  }

  /// The names that there are.
  static let names: Set<String> = [
    rulesName, writeSizeLimitName, "strictTriggerValidation", "functionTriggers",
  ]
  static let rulesName = "rules"
  static let writeSizeLimitName = "defaultWriteSizeLimit"

  /// - Parameter mayHaveOtherRules: whether damage has left other rules than there were, or none: nothing is allowed then.
  init(_ engine: Engine, mayHaveOtherRules: Bool) {
    self.engine = engine
    let pages = engine.systemNode(at: Self.root)
    let rules = mayHaveOtherRules ? RuleSet(compiling: "") : Self.rules(pages)
    state = Mutex(State(pages: pages, rules: rules))
  }

  /// The rules of the database; nil if it has none.
  var rules: RuleSet? { state.withLock { $0.rules } }

  /// How long a write may take that does not say it.
  var writeSizeLimit: WriteSizeLimit {
    self[Self.writeSizeLimitName].flatMap { WriteSizeLimit(json: $0) } ?? .large
  }

  /// The text that was put last under a name; nil if none was.
  subscript(_ name: String) -> String? {
    state.withLock { Self.text(name, $0.pages) }
  }

  /// Keeps a text.
  ///
  /// - Parameters:
  ///   - rules: those that the text is, if it is one of rules. They are in force once the completion is called.
  ///   - completion: called once, on any thread, as soon as the text is durable, or with the reason why it was not kept.
  func put(
    _ text: String, as name: String, rules: RuleSet? = nil,
    completion: @escaping @Sendable (EngineError?) -> Void
  ) {
    let change = EncodedWrite(.set(Self.root.appending(Self.key(name)), Node(.string(text))))
    engine.submit(EncodedWrite(nil, system: change)) { [self] result in
      if case .failure(let error) = result { return completion(error) }
      // Completions come in the order of the writes: the last one wins here as it does on the disk.
      state.withLock { state in
        state.putCount += 1
        state.pages.graft(Node(.string(text)), at: Path.root.appending(Self.key(name)))
        if name == Self.rulesName { state.rules = rules ?? RuleSet(compiling: text) }
      }
      completion(nil)
    }
  }

  /// Looks, before something is judged, whether another server has put rules: those hold from now on. `refresh()` tells it
  /// once more.
  func refreshEarly() {
    if lookAgain() { hasChanged.store(true, ordering: .relaxed) }
  }

  /// Looks what another process has written, in a database that follows one or that several servers have.
  ///
  /// - Returns: whether the rules have changed.
  func refresh() -> Bool {
    let hasChanged = hasChanged.exchange(false, ordering: .relaxed)
    return lookAgain() || hasChanged
  }

  private func lookAgain() -> Bool {
    guard engine.isReadOnly || engine.sharedLog != nil else { return false }
    // One look at a time, and no put meanwhile: a look never puts older settings in the place of newer ones.
    return looks.withLock { _ in
      while true {
        let putCount = state.withLock { $0.putCount }
        let pages = engine.systemNode(at: Self.root)
        let isChanged = state.withLock { $0.putCount == putCount ? $0.take(pages) : nil }
        if let isChanged { return isChanged }
      }
    }
  }

  private static func rules(_ pages: Node) -> RuleSet? {
    text(rulesName, pages).map { RuleSet(compiling: $0) }
  }

  private static func text(_ name: String, _ pages: Node) -> String? {
    if case .string(let text)? = pages.child(key(name)).scalar { text } else { nil }
  }

  private static var root: Path { ServerRules.settings }

  private static func key(_ name: String) -> Key {
    guard let key = try? Key(name) else { preconditionFailure("\(name) is a key") }
    return key
  }
}
