package import Dendro
import DendroProtocol
import Dispatch
import Synchronization

/// Finds the database that a request is for.
package protocol Namespaces: Sendable {
  /// The database with this name, which is opened if it is not. May take as long as opening takes.
  ///
  /// - Parameters:
  ///   - name: valid; nil if the request names none.
  ///   - makesNew: whether a database that does not exist is made. The one without a name always is.
  func namespace(_ name: String?, makesNew: Bool) throws -> Namespace
  /// The database with this name, if that takes no time.
  func open(_ name: String?) -> Namespace?
  /// The names of all databases.
  var names: [String] { get }
  /// All that are open.
  var all: [Namespace] { get }
  /// Writes what clients had registered when a server crashed, in databases that are not open yet. May take as long as
  /// opening them takes; what cannot be opened is passed over.
  func writeLeftovers()
  /// How long synchronizes of the log take; nil if the databases were not opened here.
  var flushes: Histogram? { get }
  /// Ends the serving. Databases that were opened here are closed.
  func end() throws
}

/// Why there is no database for a request.
package enum NamespaceError: Error {
  case unknown(String)
  case tooMany(limit: Int)
  case ended
}

extension Namespaces {
  package func writeLeftovers() {}
}

/// A single database, under one name or under every name.
package final class SingleNamespace: Namespaces {
  private let only: Namespace
  private let acceptsAll: Bool
  private let closes: Bool

  /// - Parameters:
  ///   - database: open.
  ///   - name: nil for every name.
  ///   - closes: whether the database is closed at the end of the serving.
  package init(
    _ database: Database, named name: String?, closes: Bool = false
  ) throws(DatabaseError) {
    self.closes = closes
    only = try Namespace(name ?? "default", database)
    acceptsAll = name == nil
  }

  package func namespace(_ name: String?, makesNew: Bool) throws -> Namespace {
    guard let found = open(name) else { throw NamespaceError.unknown(name ?? "") }
    return found
  }

  package func open(_ name: String?) -> Namespace? {
    acceptsAll || name == nil || name == only.name ? only : nil
  }

  package var flushes: Histogram? { nil }
  package var names: [String] { [only.name] }
  package var all: [Namespace] { [only] }

  package func end() throws {
    only.end()
    if closes { try only.database.close() }
  }
}

/// Databases that are opened, or made, when they are first asked for.
package final class OpeningNamespaces: Namespaces {
  /// Opens the database with a name; several names may be opened at once, each by one thread.
  package typealias Opener = @Sendable (_ name: String) throws -> Database

  private let defaultName: String
  private let limit: Int
  private let opener: Opener
  private let known: @Sendable () -> [String]
  private let mayHaveLeftovers: @Sendable (String) -> Bool
  package let flushes: Histogram?
  private let state = Mutex(State())

  private struct State {
    var open: [String: Namespace] = [:]
    var opening: [String: Opening] = [:]
    var isEnded = false
  }

  /// The opening of one database: the lock is held by the thread that opens it.
  private final class Opening: Sendable {
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
  ///   - opener: opens a database.
  package init(
    default name: String, limit: Int, flushes: Histogram? = nil,
    known: @escaping @Sendable () -> [String],
    mayHaveLeftovers: @escaping @Sendable (String) -> Bool = { _ in false },
    opener: @escaping Opener
  ) {
    defaultName = name
    self.limit = limit
    self.known = known
    self.mayHaveLeftovers = mayHaveLeftovers
    self.flushes = flushes
    self.opener = opener
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

  /// Opens the databases that may have some, but leaves half of the limit to those that are asked for: the rest are written
  /// when theirs is.
  package func writeLeftovers() {
    for name in known().sorted() where open(name) == nil && mayHaveLeftovers(name) {
      guard state.withLock({ !$0.isEnded && $0.open.count < limit / 2 }) else { return }
      _ = try? namespace(name, makesNew: false)
    }
  }

  private func finish(_ name: String, _ result: Result<Namespace, any Error>) {
    let late = state.withLock { state -> Namespace? in
      state.opening[name] = nil
      guard case .success(let namespace) = result else { return nil }
      if state.isEnded { return namespace }
      state.open[name] = namespace
      return nil
    }
    late?.end()
    try? late?.database.close()
  }

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
