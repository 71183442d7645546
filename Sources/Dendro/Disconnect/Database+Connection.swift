import DendroEngine
import DendroTree
import Synchronization

// There is no server to lose. Going offline is something the program says: the operations that were
// registered for it are written, and `.info/connected` turns false. Everything else works as before.

extension Database {
  /// Says that the program is offline now: writes what `onDisconnect…` registered, all of it as one
  /// write, and makes `.info/connected` false. Where it is offline already, only what was
  /// refused before is written.
  ///
  /// Reading, writing and listening go on as before: nothing here waits for a server. Where the write is
  /// refused, ``DatabaseOptions/errorHandler`` gets the error, and the operations stay registered: they
  /// are written by the next call, or when the database is closed.
  public func goOffline() {
    do throws(DatabaseError) {
      OpenDatabase(engine: try usable(), hub: hub, connection: connection).goOffline()
    } catch {
      hub.report(error)
    }
  }

  /// Says that the program is online again: makes `.info/connected` true.
  public func goOnline() {
    do throws(DatabaseError) {
      OpenDatabase(engine: try usable(), hub: hub, connection: connection).goOnline()
    } catch {
      hub.report(error)
    }
  }
}

// MARK: - All databases

/// What going offline takes. It does not hold the database, whose last reference closes it; nor is there
/// a weak one, which would make each of its references, one for every location, slower to count.
private struct OpenDatabase {
  let engine: Engine
  let hub: EventHub
  let connection: Connection

  func goOffline() {
    connection.noteUse()
    connection.goOffline(
      engine, refused: { [hub] error in hub.report(DatabaseError(error)) }, hub.infoChanged)
  }

  func goOnline() {
    connection.noteUse()
    connection.goOnline(hub.infoChanged)
  }

  static let all = Mutex<[ObjectIdentifier: OpenDatabase]>([:])
}

extension Database {
  /// Makes it one of the databases that `DatabaseReference.goOffline()` means.
  func register() {
    guard let engine else { return }
    let open = OpenDatabase(engine: engine, hub: hub, connection: connection)
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
