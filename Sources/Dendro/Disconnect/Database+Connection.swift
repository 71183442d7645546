import DendroEngine
import DendroTree
import Dispatch
import Synchronization

// There is no server to lose. Going offline is something the program says: the operations that were
// registered for it are written, and `.info/connected` turns false. Everything else works as before.

extension Database {
  /// Says that the program is offline now: writes what `onDisconnect…` registered, all of it as one
  /// write, and makes `.info/connected` false. Does nothing where it is offline already.
  ///
  /// Reading, writing and listening go on as before: nothing here waits for a server. A failure of the
  /// write goes to ``DatabaseOptions/errorHandler``.
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

  /// What was registered for the end: the last write, once nothing more can be registered.
  func takeLastWrite() -> Draft? {
    connection.end()
  }

  /// Writes it where nobody closed the database: on a thread that may wait, since the last reference may
  /// go on the engine's own.
  func leaveDisconnectOperations() {
    guard let engine, engine.refusal == nil, let draft = connection.end() else { return }
    DispatchQueue.global().async { engine.submit(draft, completion: nil) }
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
    if let draft = connection.set(online: false, hub.infoChanged) {
      engine.submit(draft, completion: nil)
    }
  }

  func goOnline() {
    connection.noteUse()
    _ = connection.set(online: true, hub.infoChanged)
  }

  static let all = Mutex<[ObjectIdentifier: OpenDatabase]>([:])
}

extension Database {
  /// Makes it one of those that `DatabaseReference.goOffline()` means.
  func enlist() {
    guard let engine else { return }
    let open = OpenDatabase(engine: engine, hub: hub, connection: connection)
    OpenDatabase.all.withLock { $0[ObjectIdentifier(self)] = open }
  }

  /// Closed or gone.
  func delist() { OpenDatabase.all.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(self)) } }
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
