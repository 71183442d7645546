package import Dendro
package import DendroEngine
import Dispatch
import Synchronization

/// Databases that are opened, or made, when they are first asked for.
///
/// At most `limit` are open at a time. If one more is needed, the one that was not used for the longest time is closed; so
/// is each that was not used for `idleTime`. A database in use stays open: `NamespaceLease` counts the uses. A request that
/// comes while its database is closed waits, and opens it again.
package final class OpeningNamespaces: Namespaces {
  /// Opens the database with a name; several names may be opened at once, each by one thread.
  package typealias Opener = @Sendable (_ name: String) throws -> Database

  /// How many databases there may be.
  package struct Limits: Sendable {
    /// The most that are open at a time.
    package var openCount: Int
    /// The most that requests make, those that exist already included. The one without a name is always made.
    package var count: Int
    /// How long one that is not used stays open.
    package var idleTime: Duration

    package init(
      openCount: Int = 256, count: Int = 10_000, idleTime: Duration = .seconds(600)
    ) {
      self.openCount = openCount
      self.count = count
      self.idleTime = idleTime
    }
  }

  private let defaultName: String
  private let limits: Limits
  private let isOnDisk: Bool
  private let opener: Opener
  private let known: @Sendable () -> [String]
  private let mayHaveLeftovers: @Sendable (String) -> Bool
  private let report: @Sendable (NamespaceEvent) -> Void
  private let directory: @Sendable (String) -> String?
  private let existsElsewhere: @Sendable (String) throws -> Bool
  private let peer: (@Sendable (Database) -> PeerStatus?)?
  package let flushes: Histogram?
  private let table: Mutex<NamespaceTable>
  private let room = NamespaceRoom()
  private let isOpeningNew = Atomic<Bool>(false)

  /// - Parameters:
  ///   - name: of the database that requests without a name are for.
  ///   - limits: how many there may be.
  ///   - flushes: gets how long synchronizes take; filled by the opener's databases.
  ///   - known: the names of those that exist, open or not.
  ///   - mayHaveLeftovers: whether a server may have crashed with registrations of clients in a database.
  ///   - directory: the path of a database's directory; nil if it has none.
  ///   - existsElsewhere: whether a database exists although it has no directory here.
  ///   - peer: what part this server has in a database; nil if no other servers have the databases.
  ///   - report: gets the reason if a database cannot be opened: once, and not with every request.
  ///   - opener: opens a database.
  package init(
    default name: String, limits: Limits, flushes: Histogram? = nil,
    known: @escaping @Sendable () -> [String],
    mayHaveLeftovers: @escaping @Sendable (String) -> Bool = { _ in false },
    directory: @escaping @Sendable (String) -> String? = { _ in nil },
    existsElsewhere: @escaping @Sendable (String) throws -> Bool = { _ in false },
    peer: (@Sendable (Database) -> PeerStatus?)? = nil,
    report: @escaping @Sendable (NamespaceEvent) -> Void = { _ in },
    opener: @escaping Opener
  ) {
    defaultName = name
    table = Mutex(NamespaceTable(default: name))
    var limits = limits
    // Files that are open for long; with other servers connections as well.
    isOnDisk = directory(name) != nil
    if isOnDisk {
      let count = DescriptorLimit.current.databaseCount(each: peer == nil ? 4 : 12)
      limits.openCount = min(limits.openCount, count)
    }
    self.limits = limits
    self.known = known
    self.mayHaveLeftovers = mayHaveLeftovers
    self.flushes = flushes
    self.directory = directory
    self.existsElsewhere = existsElsewhere
    self.peer = peer
    self.report = report
    self.opener = opener
  }

  package var makesNamespaces: Bool { true }

  package var havePeers: Bool { peer != nil }

  package func refusal(ofMaking name: String?) -> NamespaceError? {
    let name = name ?? defaultName
    return directory(name).flatMap { Self.isDirectory($0) } == false ? .noDirectory(name) : nil
  }

  package func open(_ name: String?) -> NamespaceLease? {
    table.withLock { $0.open[name ?? defaultName].map(lease) }
  }

  package func namespace(_ name: String?, makesNew: Bool) throws -> NamespaceLease {
    let name = name ?? defaultName
    try checkExistence(of: name, makesNew: makesNew)
    var place: NamespaceRoom.Place?
    defer { if let place { room.leave(place) } }
    while true {
      switch try step(towards: name) {
      case .open(let lease): return lease
      case .change(let change): if let lease = try change.perform() { return lease }
      case .full:
        if let place {
          guard place.wait() else { throw NamespaceError.tooMany(limit: limits.openCount) }
        } else {
          // What ends before the next look is noticed.
          place = room.join()
          if place == nil { throw NamespaceError.tooMany(limit: limits.openCount) }
        }
      }
    }
  }

  /// - Throws: if the database does not exist and is not to be made, or if that cannot be found out.
  private func checkExistence(of name: String, makesNew: Bool) throws {
    if name == defaultName || table.withLock({ $0.has(name) }) { return }
    if try exists(name) { return }
    guard makesNew else { throw NamespaceError.unknown(name) }
    let existing = known()
    let count = table.withLock { table in
      Set(existing).union(table.open.keys).union(table.changing.keys).count
    }
    guard count < limits.count else { throw NamespaceError.tooManyExist(limit: limits.count) }
  }

  private func exists(_ name: String) throws -> Bool {
    if directory(name).flatMap({ Self.isDirectory($0) }) ?? false { return true }
    return try existsElsewhere(name)
  }

  // MARK: Opening and closing

  private enum Step {
    case open(NamespaceLease)
    /// The database is to be opened, or it or another one is to be closed before.
    case change(NamespaceChange)
    /// All are in use.
    case full
  }

  private func step(towards name: String) throws -> Step {
    try table.withLock { table in
      if table.isEnded { throw NamespaceError.ended }
      if let open = table.open[name] { return .open(lease(open)) }
      if let change = table.changing[name] { return .change(change) }
      // Each attempt asks PostgreSQL and reads the disk.
      if havePeers, let failure = table.failure(of: name, within: .seconds(1)) { throw failure }
      guard table.count < limits.openCount else {
        return table.leastRecentlyUsed.map { .change(closing($0, in: &table)) } ?? .full
      }
      let change = NamespaceChange { [self] in try opened(name) }
      table.changing[name] = change
      return .change(change)
    }
  }

  private func lease(_ namespace: Namespace) -> NamespaceLease {
    NamespaceLease(namespace) { [room] in room.signal() }
  }

  /// Opens a database.
  private func opened(_ name: String) throws -> NamespaceLease {
    defer { room.signal() }
    let result = Result { () throws -> Namespace in
      if table.withLock({ $0.isEnded }) { throw NamespaceError.ended }
      guard !isOnDisk || DescriptorLimit.current.hasRoomForDatabase else {
        throw NamespaceError.noDescriptors
      }
      return try Namespace(name, opener(name), peer: peer ?? { _ in nil })
    }
    switch result {
    case .success(let namespace):
      let use = table.withLock { table -> NamespaceLease? in
        table.opened(namespace)
        return table.isEnded ? nil : lease(namespace)
      }
      if let use { return use }
      namespace.end()
      try? namespace.database.close()
      throw NamespaceError.ended
    case .failure(let error):
      if let failure = table.withLock({ $0.failedToOpen(name, error) }) {
        report(
          NamespaceEvent(name, .error, "the database cannot be opened", ["error": failure.message]))
      }
      throw error
    }
  }

  /// Takes a database that is not used out of the table. It is closed by who needs that first.
  private func closing(_ namespace: Namespace, in table: inout NamespaceTable) -> NamespaceChange {
    let change = NamespaceChange { [self] in
      close(namespace)
      return nil
    }
    table.open[namespace.name] = nil
    table.changing[namespace.name] = change
    return change
  }

  private func close(_ namespace: Namespace) {
    defer { room.signal() }
    let isClosed = limitWaiting(in: namespace)
    defer { isClosed.cancel() }
    // The last writes of sessions that have just ended, if the disk has become full meanwhile. With other servers, one that
    // leads makes them later.
    if !namespace.settle(), !namespace.isShared, stayedOpen(namespace) { return }
    namespace.end()
    do {
      try namespace.database.close()
    } catch {
      report(
        NamespaceEvent(
          namespace.name, .error, "the database was not closed in order", ["error": "\(error)"]))
    }
    table.withLock { $0.closed(namespace) }
  }

  /// Has writes that wait for other servers end in a while.
  ///
  /// - Returns: to be cancelled once the database is closed, or stays open.
  private func limitWaiting(in namespace: Namespace) -> DispatchWorkItem {
    let limit = DispatchWorkItem { namespace.stopWaiting() }
    if namespace.isShared {
      DispatchQueue.global().asyncAfter(deadline: .now() + Self.closingPatience, execute: limit)
    }
    return limit
  }

  private static let closingPatience: DispatchTimeInterval = .seconds(5)

  package func stopWaiting() { for namespace in all { namespace.stopWaiting() } }

  /// Puts a database back into the table, unless the serving has ended.
  private func stayedOpen(_ namespace: Namespace) -> Bool {
    table.withLock { table in
      if !table.isEnded { table.opened(namespace) }
      return !table.isEnded
    }
  }

  package func closeIdle() {
    let changes = table.withLock { table in
      table.idle(since: .now - limits.idleTime).map { closing($0, in: &table) }
    }
    for change in changes { _ = try? change.perform() }
  }

  package func openNew() -> [Namespace] {
    guard havePeers, !isOpeningNew.exchange(true, ordering: .acquiring) else { return [] }
    defer { isOpeningNew.store(false, ordering: .releasing) }
    return known().sorted().compactMap { name in
      let isNew = table.withLock { table in
        !table.isEnded && !table.has(name) && table.count < limits.openCount
          && table.failure(of: name, within: .seconds(10)) == nil
      }
      return isNew ? try? namespace(name, makesNew: false).namespace : nil
    }
  }

  /// Opens the databases that may have some, as far as that takes no room from others in use.
  package func writeLeftovers() {
    for name in known().sorted() where mayHaveLeftovers(name) {
      if table.withLock({ $0.isEnded }) { return }
      _ = try? namespace(name, makesNew: false)
    }
  }

  // MARK: Databases that cannot be opened

  package func remains(of name: String?) -> Namespace? {
    let name = name ?? defaultName
    let damaged = table.withLock { table -> DamagedDirectory? in
      guard !table.isEnded, table.failed[name]?.isDamage == true else { return nil }
      if let known = table.damaged[name] { return known }
      table.damaged[name] = directory(name).map { DamagedDirectory(name, at: $0) }
      return table.damaged[name]
    }
    return damaged?.remains
  }

  package var failures: [String: DatabaseError] { table.withLock { $0.failed } }

  package var failureCount: UInt64 { table.withLock { $0.failureCount } }

  package var failureCounts: [FailureKind: UInt64] { table.withLock { $0.failureCounts } }

  package var hasMissing: Bool {
    table.withLock { !$0.isEnded && (!$0.hasOpenedDefault || !$0.failed.isEmpty) }
  }

  package func openMissing() {
    let existing = Set(known())
    let names = table.withLock { table -> Set<String> in
      table.forgetFailures(except: existing)
      return Set(table.failed.keys).union(table.hasOpenedDefault ? [] : [defaultName])
    }
    for name in names.intersection(existing) { _ = try? namespace(name, makesNew: false) }
  }

  // MARK: All of them

  package func name(of asked: String?) -> String { asked ?? defaultName }

  package var names: [String] {
    Set(known() + table.withLock { Array($0.open.keys) }).sorted()
  }

  package var atEnd: [Namespace] { table.withLock { $0.atEnd } }

  package var all: [Namespace] { table.withLock { Array($0.open.values) } }

  package func end() throws {
    let (open, changing) = table.withLock { table in
      table.isEnded = true
      defer {
        table.atEnd += table.open.values
        table.open = [:]
      }
      return (Array(table.open.values), Array(table.changing.values))
    }
    // Several at a time: each waits for the disk.
    let queue = DispatchQueue(label: "dendro-close", attributes: .concurrent)
    let slots = DispatchSemaphore(value: 16)
    let closed = DispatchGroup()
    let failure = Mutex<(any Error)?>(nil)
    for namespace in open {
      slots.wait()
      queue.async(group: closed) { [self] in
        let isClosed = limitWaiting(in: namespace)
        defer { isClosed.cancel() }
        namespace.end()
        do {
          try namespace.database.close()
        } catch {
          failure.withLock { $0 = error }
        }
        slots.signal()
      }
    }
    for change in changing { _ = try? change.perform() }
    closed.wait()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}
