import DendroEngine
import DendroTree
import Synchronization

// The settings of Firebase's API. A setter cannot throw, so a refused value is reported to the error handler
// under the name of Firebase's exception, and nothing changes.

extension Database {
  /// Whether the data survives the process: true in a directory, and false in memory.
  ///
  /// In a database of ``database(url:)`` or `useEmulator` that keeps in step with a server it is false, and may be set: then
  /// what the server has said and the writes that it has not answered are kept in the user's data directory, under the
  /// name of the executable and the server's host, port and namespace. Another database is what it was opened as:
  /// setting another value is refused. Setting any is refused after the first use (the first `reference…`, `goOnline` or
  /// `goOffline`), and if the directory cannot be opened.
  public var isPersistenceEnabled: Bool {
    get { directory != nil }
    set {
      let isPersistent = isPersistenceEnabled
      let isRefused = refuseSetting(
        "isPersistenceEnabled",
        newValue == isPersistent || newValue && remoteHolder != nil
          ? nil
          : isPersistent
            ? "a database in a directory keeps its data; Database.inMemory() makes one that does not"
            : "a database in memory keeps nothing; Database.open(at:) makes one that does")
      if isRefused { return }
      settings.setPersistenceWanted(newValue)
      if !isPersistent, newValue { keepFiles() }
    }
  }

  /// Has a database that keeps in step with a server do so in the user's data directory.
  func keepFiles() {
    guard let holder = remoteHolder else { return }
    do {
      var setup = holder.setup
      let address = setup.address
      let path =
        try Self.defaultDirectory()
        + "@\(address.host)_\(address.port)" + (address.namespace.map { "_\($0)" } ?? "")
        + (address.isSecure ? "_synced" : "_synced_http")
      setup.files = try files(at: path, for: address, options: DatabaseOptions())
      holder.change(setup)
    } catch {
      hub.report(error as? DatabaseError ?? Self.cannotBeMade(error))
    }
  }

  /// How much a database that keeps in step with a server, in a directory, keeps of what nothing listens to: beyond it the
  /// locations and queries go that were not used for longest. What is listened to, what is kept in step, and writes
  /// without an answer stay. It is about the bytes that the data take in memory.
  ///
  /// A database that owns its data keeps all of them, and does nothing with it.
  ///
  /// 1 MiB to 100 MiB, before the first use; anything else is refused. Default: 10 MiB.
  public var persistenceCacheSizeBytes: UInt {
    get { settings.cacheByteCount }
    set {
      let range: ClosedRange<UInt> = 1 << 20...100 << 20
      let isRefused = refuseSetting(
        "persistenceCacheSizeBytes",
        range.contains(newValue)
          ? nil : "\(newValue) bytes is not within \(range.lowerBound) and \(range.upperBound)")
      if !isRefused { settings.setCacheByteCount(newValue) }
    }
  }

  /// Has the database keep in step with an emulator, or with `dendro serve`, if the program imports `DendroSync` and has
  /// enabled it: the server owns the data then, and what is in a directory is not touched. Otherwise it stays the local
  /// one. The URLs of references begin with `http://host:port` from then on.
  ///
  /// Call it before anything else. It is refused after the first use, and for what is no host or no port.
  ///
  /// - Parameters:
  ///   - host: a name or an address; an IPv6 address may stand in brackets.
  ///   - port: 0 to 65535.
  public func useEmulator(withHost host: String, port: Int) {
    let host = DatabaseURL.isIPv6(host) ? "[\(host)]" : host
    if remoteHolder?.files != nil, !settings.isPersistenceWanted {
      refuse(
        .alreadyInUse, "NSInternalInconsistencyException",
        "the directory of the database belongs to the server with which it was opened")
    } else if connection.isInUse {
      refuse(
        .alreadyInUse, "NSInternalInconsistencyException",
        "useEmulator(withHost:port:) must be called before the database is used")
    } else if !DatabaseURL.isHost(host) || !(0...65535).contains(port) {
      refuse(
        .invalidArgument, "NSInvalidArgumentException",
        "useEmulator(withHost:port:) needs a host and a port, not \(host.debugDescription) and \(port)"
      )
    } else {
      settings.setAddress("http://\(host.lowercased()):\(port)")
      keepInStep(withEmulatorAt: host.lowercased(), port: port)
    }
  }

  /// Takes back all that a server has not answered, but for the writes of other users: writes, transactions and operations on
  /// disconnecting, which fail with
  /// ``DatabaseError/Code/canceled``. Listeners get the events of that.
  ///
  /// Does nothing in a database that owns its data: an admitted write is written to the disk, and its completion gets the
  /// result.
  public func purgeOutstandingWrites() {
    connection.noteUse()
    if (try? checkOpen()) != nil { remote?.purge() }
  }

  /// Waits until the server has accepted or refused every write made before the call, in a database that keeps in step with
  /// one; otherwise as `synchronize()` does.
  ///
  /// It does not wait for transactions and operations on disconnecting, which have completions of their own. Without a network
  /// it does not return. Cancelling the task does not end it; closing the database does.
  ///
  /// - Throws: ``DatabaseError`` if the disk refuses, or the database is closed. What became of a write its own completion
  ///   says.
  ///
  /// A write that waits for a decision (``pendingWrites()``) has no answer before that; the writes of other users do not count.
  public func waitForPendingWrites() async throws {
    connection.noteUse()
    guard let remote else { return try await synchronize() }
    try checkOpen()
    await withUnsafeContinuation { continuation in
      remote.afterPendingWrites { continuation.resume() }
    }
    try checkOpen()
  }

  /// Whether every database of the process writes what it does on standard error, a line each, beside
  /// ``DatabaseOptions/logging``. Default: false.
  public static func setLoggingEnabled(_ enabled: Bool) {
    DatabaseSettings.isLogging.store(enabled, ordering: .relaxed)
  }

  /// The version of this library.
  public static func sdkVersion() -> String { "0.1.0" }

  /// - Returns: whether the setting was refused.
  @discardableResult
  private func refuseSetting(_ name: String, _ reason: String?) -> Bool {
    if connection.isInUse {
      refuse(
        .alreadyInUse, "FIRDatabaseAlreadyInUse",
        "\(name) must be set before the first reference is made")
      return true
    }
    guard let reason else { return false }
    refuse(.invalidArgument, "NSInvalidArgumentException", "\(name): \(reason)")
    return true
  }

  private func refuse(_ code: DatabaseError.Code, _ name: String, _ message: String) {
    hub.report(DatabaseError(code, name, message))
  }
}

extension DatabaseQuery {
  /// Declares that the query will be read often, or takes that back.
  ///
  /// In a database that keeps in step with a server, the data of the query are kept up to date without a
  /// listener, so that ``getData()`` answers without a network. If the server refuses that, it ends.
  ///
  /// In a database that owns its data, the order of a query by a child, by value or by priorities is then kept from its first `getData` on,
  /// about 100 bytes for each child of the location, and not dropped while the database is open: each read
  /// costs what changed since the last one. ``DatabaseOptions/queryOrderLimit`` neither counts nor limits such
  /// orders. For a reference it does nothing, since everything is always current. Default: false.
  ///
  /// Refused below `.info` and for a bad reference, by ``DatabaseOptions/errorHandler``.
  public func keepSynced(_ keepSynced: Bool) {
    do throws(DatabaseError) {
      let source = try source()
      if location.isInfo {
        throw DatabaseError(
          .invalidArgument, "NSInvalidArgumentException", "\(location) cannot be kept synchronized")
      }
      let parameters = parameters
      if case .remote(let remote) = source { return remote.keep(target, keepSynced) }
      // In the order of keys the data itself is kept.
      if parameters.order == .key || parameters == QueryParameters() { return }
      if keepSynced {
        owner.orderCache.declare(parameters, at: location)
      } else {
        owner.orderCache.takeBack(parameters, at: location)
      }
    } catch {
      owner.hub.report(error)
    }
  }
}
