import DendroEngine
import DendroTree
import Synchronization

// A database that owns its data has no server, and hence no connection to lose. The program itself declares that it is offline:
// then the registered operations are written, and `.info/connected` turns false. All else works as before.

extension Database {
  /// Takes the database offline. One that keeps in step with a server ends the connection: what is written waits.
  ///
  /// A database that owns its data writes the operations that `onDisconnect…` registered, all of them as one
  /// write, and makes `.info/connected` false. If it is offline already, only operations that were
  /// refused before are written.
  ///
  /// Its reading, writing and listening go on as before. If the write is
  /// refused, ``DatabaseOptions/errorHandler`` gets the error, and the operations stay registered: they
  /// are written by the next call, or when the database is closed.
  public func goOffline() {
    do throws(DatabaseError) {
      try opened().goOffline()
    } catch {
      hub.report(error)
    }
  }

  /// Takes the database online again: makes `.info/connected` true, with a server as soon as there is a connection, which is
  /// made at once.
  public func goOnline() {
    do throws(DatabaseError) {
      try opened().goOnline()
    } catch {
      hub.report(error)
    }
  }

  private func opened() throws(DatabaseError) -> OpenDatabase {
    if let holder = remoteHolder {
      try checkOpen()
      return OpenDatabase(engine: nil, remote: holder, hub: hub, connection: connection)
    }
    return OpenDatabase(engine: try usable(), remote: nil, hub: hub, connection: connection)
  }
}

// MARK: - All databases

/// The parts of an open database that `goOffline()` uses. They do not keep it open. A weak reference to the
/// database would make counting all its references slower, of which each location holds one.
private struct OpenDatabase {
  let engine: Engine?
  let remote: RemoteHolder?
  let hub: EventHub
  let connection: Connection

  func goOffline() {
    connection.noteUse()
    if let remote { return remote.remote.goOffline() }
    guard let engine else { return }
    connection.goOffline(
      engine, refused: { [hub] error in hub.report(DatabaseError(error)) }, hub.infoChanged,
      released: hub.handOver)
  }

  func goOnline() {
    connection.noteUse()
    if let remote { return remote.remote.goOnline() }
    connection.goOnline(hub.infoChanged)
    hub.handOver()
  }

  static let all = Mutex<[ObjectIdentifier: OpenDatabase]>([:])
}

extension Database {
  /// Adds it to the databases that `DatabaseReference.goOffline()` takes offline.
  func register() {
    guard let open = try? opened() else { return }
    OpenDatabase.all.withLock { $0[ObjectIdentifier(self)] = open }
  }

  func unregister() {
    OpenDatabase.all.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(self)) }
  }
}

extension DatabaseReference {
  /// ``Database/goOffline()`` of every open database of the process.
  public class func goOffline() {
    for database in OpenDatabase.all.withLock({ Array($0.values) }) { database.goOffline() }
  }

  /// ``Database/goOnline()`` of every open database of the process.
  public class func goOnline() {
    for database in OpenDatabase.all.withLock({ Array($0.values) }) { database.goOnline() }
  }
}
