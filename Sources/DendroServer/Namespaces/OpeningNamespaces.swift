package import Dendro
import Dispatch
import Synchronization

/// Databases that are opened, or made, when they are first asked for.
package final class OpeningNamespaces: Namespaces {
  /// Opens the database with a name; several names may be opened at once, each by one thread.
  package typealias Opener = @Sendable (_ name: String) throws -> Database

  private let defaultName: String
  private let limit: Int
  private let opener: Opener
  private let known: @Sendable () -> [String]
  private let mayHaveLeftovers: @Sendable (String) -> Bool
  private let report: @Sendable (NamespaceEvent) -> Void
  private let directory: @Sendable (String) -> String?
  package let flushes: Histogram?
  private let state = Mutex(State())

  fileprivate struct State {
    var open: [String: Namespace] = [:]
    var opening: [String: Opening] = [:]
    var failed: [String: DatabaseError] = [:]
    var damaged: [String: DamagedDirectory] = [:]
    var failureCount: UInt64 = 0
    var isEnded = false
  }

  /// The most failures that are remembered: clients choose the names.
  fileprivate static let failureLimit = 256

  /// The opening of one database: the lock is held by the thread that opens it.
  fileprivate final class Opening: Sendable {
    let result = Mutex<Result<Namespace, any Error>?>(nil)
  }

  private enum Found {
    case open(Namespace)
    case opening(Opening)
  }

  /// - Parameters:
  ///   - name: of the database that requests without a name are for.
  ///   - limit: the most databases that are open at a time.
  ///   - flushes: gets how long synchronizes take; filled by the opener's databases.
  ///   - known: the names of those that exist, open or not.
  ///   - mayHaveLeftovers: whether a server may have crashed with registrations of clients in a database.
  ///   - directory: the path of a database's directory; nil if it has none.
  ///   - report: gets the reason if a database cannot be opened: once, and not with every request.
  ///   - opener: opens a database.
  package init(
    default name: String, limit: Int, flushes: Histogram? = nil,
    known: @escaping @Sendable () -> [String],
    mayHaveLeftovers: @escaping @Sendable (String) -> Bool = { _ in false },
    directory: @escaping @Sendable (String) -> String? = { _ in nil },
    report: @escaping @Sendable (NamespaceEvent) -> Void = { _ in },
    opener: @escaping Opener
  ) {
    defaultName = name
    self.limit = limit
    self.known = known
    self.mayHaveLeftovers = mayHaveLeftovers
    self.flushes = flushes
    self.directory = directory
    self.report = report
    self.opener = opener
  }

  package var makesNamespaces: Bool { true }

  package func refusal(ofMaking name: String?) -> NamespaceError? {
    let name = name ?? defaultName
    return directory(name).flatMap { Self.isDirectory($0) } == false ? .noDirectory(name) : nil
  }

  package func open(_ name: String?) -> Namespace? {
    state.withLock { $0.open[name ?? defaultName] }
  }

  package func namespace(_ name: String?, makesNew: Bool) throws -> Namespace {
    let name = name ?? defaultName
    guard makesNew || name == defaultName || open(name) != nil || known().contains(name) else {
      throw NamespaceError.unknown(name)
    }
    let opening = try state.withLock { state -> Found in
      if state.isEnded { throw NamespaceError.ended }
      if let open = state.open[name] { return .open(open) }
      if let opening = state.opening[name] { return .opening(opening) }
      guard state.open.count + state.opening.count < limit else {
        throw NamespaceError.tooMany(limit: limit)
      }
      let opening = Opening()
      state.opening[name] = opening
      return .opening(opening)
    }
    switch opening {
    case .open(let open): return open
    case .opening(let opening):
      return try opening.result.withLock { result in
        if let result { return try result.get() }
        let new = Result { try Namespace(name, opener(name)) }
        result = new
        finish(name, new)
        return try new.get()
      }
    }
  }

  package func remains(of name: String?) -> Namespace? {
    let name = name ?? defaultName
    let damaged = state.withLock { state -> DamagedDirectory? in
      guard !state.isEnded, state.failed[name]?.code == .corrupt else { return nil }
      if let known = state.damaged[name] { return known }
      state.damaged[name] = directory(name).map { DamagedDirectory(name, at: $0) }
      return state.damaged[name]
    }
    return damaged?.remains
  }

  /// Opens the databases that may have some, but leaves half of the limit to those that are asked for: the rest are written
  /// when theirs is.
  package func writeLeftovers() {
    for name in known().sorted() where open(name) == nil && mayHaveLeftovers(name) {
      guard state.withLock({ !$0.isEnded && $0.open.count < limit / 2 }) else { return }
      _ = try? namespace(name, makesNew: false)
    }
  }

  private func finish(_ name: String, _ result: Result<Namespace, any Error>) {
    let (late, failure) = state.withLock { state -> (Namespace?, DatabaseError?) in
      state.opening[name] = nil
      switch result {
      case .success(let namespace):
        state.failed[name] = nil
        state.damaged[name] = nil
        if state.isEnded { return (namespace, nil) }
        state.open[name] = namespace
        return (nil, nil)
      case .failure(let error):
        return (nil, (error as? DatabaseError).flatMap { state.note($0, of: name) })
      }
    }
    late?.end()
    try? late?.database.close()
    if let failure {
      report(
        NamespaceEvent(name, .error, "the database cannot be opened", ["error": failure.message]))
    }
  }

  // MARK: Databases that cannot be opened

  package var failures: [String: DatabaseError] { state.withLock { $0.failed } }

  package var failureCount: UInt64 { state.withLock { $0.failureCount } }

  package var hasMissing: Bool {
    state.withLock { !$0.isEnded && ($0.open[defaultName] == nil || !$0.failed.isEmpty) }
  }

  package func openMissing() {
    let existing = Set(known())
    let names = state.withLock { state -> Set<String> in
      // What is gone is no failure any more.
      state.failed = state.failed.filter { existing.contains($0.key) }
      state.damaged = state.damaged.filter { existing.contains($0.key) }
      return Set(state.failed.keys).union([defaultName])
    }
    for name in names.intersection(existing) where open(name) == nil {
      _ = try? namespace(name, makesNew: false)
    }
  }

  package func name(of asked: String?) -> String { asked ?? defaultName }

  package var names: [String] {
    Set(known() + state.withLock { Array($0.open.keys) }).sorted()
  }

  package var all: [Namespace] { state.withLock { Array($0.open.values) } }

  package func end() throws {
    let open = state.withLock { state in
      state.isEnded = true
      defer { state.open = [:] }
      return Array(state.open.values)
    }
    // Several at a time: each waits for the disk.
    let queue = DispatchQueue(label: "dendro-close", attributes: .concurrent)
    let slots = DispatchSemaphore(value: 16)
    let closed = DispatchGroup()
    let failure = Mutex<(any Error)?>(nil)
    for namespace in open {
      slots.wait()
      queue.async(group: closed) {
        namespace.end()
        do {
          try namespace.database.close()
        } catch {
          failure.withLock { $0 = error }
        }
        slots.signal()
      }
    }
    closed.wait()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}

extension OpeningNamespaces.State {
  /// Remembers why a database could not be opened.
  ///
  /// - Returns: the reason if it is news.
  fileprivate mutating func note(_ error: DatabaseError, of name: String) -> DatabaseError? {
    let isKnown = failed[name]?.code == error.code
    guard isKnown || failed[name] != nil || failed.count < OpeningNamespaces.failureLimit else {
      return nil
    }
    failed[name] = error
    if isKnown { return nil }
    failureCount += 1
    return error
  }
}
