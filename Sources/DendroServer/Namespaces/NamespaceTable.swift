import Dendro
import DendroEngine

/// Which databases of a server are open, are being opened or closed, or cannot be opened.
struct NamespaceTable {
  var open: [String: Namespace] = [:]
  var changing: [String: NamespaceChange] = [:]
  private var closed: Set<String> = []
  private(set) var failed: [String: DatabaseError] = [:]
  private var failureTimes: [String: ContinuousClock.Instant] = [:]
  var damaged: [String: DamagedDirectory] = [:]
  private(set) var failureCount: UInt64 = 0
  /// What had gone wrong with databases before they were closed.
  private var failuresOfClosed: [FailureKind: UInt64] = [:]
  var isEnded = false
  /// Those that were open at the end.
  var atEnd: [Namespace] = []
  private let defaultName: String
  /// Whether the database of requests without a name was opened once.
  private(set) var hasOpenedDefault = false

  /// The most failures that are remembered: clients choose the names.
  private static let failureLimit = 256

  /// - Parameter name: of the database that requests without a name are for.
  init(default name: String) { defaultName = name }

  /// The databases that take up room.
  var count: Int { open.count + changing.count }

  func has(_ name: String) -> Bool { open[name] != nil || changing[name] != nil }

  /// The one that has not been used for the longest time, of those that may be closed.
  var leastRecentlyUsed: Namespace? {
    open.values.lazy.compactMap { namespace in namespace.idleSince.map { (namespace, $0) } }
      .min { $0.1 < $1.1 }?.0
  }

  /// Those that may be closed and were last used before a moment.
  func idle(since moment: ContinuousClock.Instant) -> [Namespace] {
    open.values.filter { $0.idleSince.map { $0 < moment } ?? false }
  }

  // MARK: Outcomes

  mutating func opened(_ namespace: Namespace) {
    changing[namespace.name] = nil
    failed[namespace.name] = nil
    failureTimes[namespace.name] = nil
    damaged[namespace.name] = nil
    if namespace.name == defaultName { hasOpenedDefault = true }
    if !isEnded { open[namespace.name] = namespace }
  }

  mutating func closed(_ namespace: Namespace) {
    changing[namespace.name] = nil
    failuresOfClosed.merge(namespace.engine.statistics().failureCounts, uniquingKeysWith: +)
  }

  /// Remembers why a database could not be opened.
  ///
  /// - Returns: the reason if it is news.
  mutating func failedToOpen(_ name: String, _ error: any Error) -> DatabaseError? {
    changing[name] = nil
    guard let error = error as? DatabaseError else { return nil }
    let isKnown = failed[name]?.code == error.code
    guard isKnown || failed[name] != nil || failed.count < Self.failureLimit else { return nil }
    failed[name] = error
    failureTimes[name] = .now
    if isKnown { return nil }
    failureCount += 1
    return error
  }

  /// Why a database could not be opened within so much time; nil if it was not tried, or could be.
  func failure(of name: String, within pause: Duration) -> DatabaseError? {
    guard let time = failureTimes[name], .now - time < pause else { return nil }
    return failed[name]
  }

  /// Forgets the failures of databases that do not exist any more.
  mutating func forgetFailures(except names: Set<String>) {
    failed = failed.filter { names.contains($0.key) }
    failureTimes = failureTimes.filter { names.contains($0.key) }
    damaged = damaged.filter { names.contains($0.key) }
  }

  /// What has gone wrong, also with databases that are closed.
  var failureCounts: [FailureKind: UInt64] {
    open.values.reduce(into: failuresOfClosed) { counts, namespace in
      counts.merge(namespace.engine.statistics().failureCounts, uniquingKeysWith: +)
    }
  }
}
