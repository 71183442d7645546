import DendroEngine
import DendroStorage
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
    connection.noteUse()
    do throws(DatabaseError) {
      let engine = try usable()
      if let draft = connection.set(online: false, hub.infoChanged),
        !Mutant.disconnectAtOffline.isPlanted
      {
        engine.submit(draft, completion: nil)
      }
    } catch {
      hub.report(error)
    }
  }

  /// Says that the program is online again: makes `.info/connected` true.
  public func goOnline() {
    connection.noteUse()
    do throws(DatabaseError) {
      _ = try usable()
      _ = connection.set(online: true, hub.infoChanged)
    } catch {
      hub.report(error)
    }
  }

  /// What was registered for the end: the last write, once nothing more can be registered.
  func takeLastWrite() -> Draft? {
    let draft = connection.end()
    return Mutant.disconnectAtClose.isPlanted ? nil : draft
  }

  /// Writes it where nobody closed the database: on a thread that may wait, since the last reference may
  /// go on the engine's own.
  func leaveDisconnectOperations() {
    guard let engine, engine.refusal == nil, let draft = connection.end(),
      !Mutant.disconnectAtRelease.isPlanted
    else { return }
    DispatchQueue.global().async { engine.submit(draft, completion: nil) }
  }
}

// MARK: - All databases

extension Database {
  private struct Reference {
    weak var database: Database?
  }

  private static let all = Mutex<[ObjectIdentifier: Reference]>([:])

  /// Makes it one of those that `DatabaseReference.goOffline()` means.
  func enlist() { Self.all.withLock { $0[ObjectIdentifier(self)] = Reference(database: self) } }

  func delist() { Self.all.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(self)) } }

  /// Those that are open.
  fileprivate static var allOpen: [Database] {
    all.withLock { $0.values.compactMap(\.database) }.filter { (try? $0.usable()) != nil }
  }
}

extension DatabaseReference {
  /// ``Database/goOffline()`` of every open database of the process.
  public class func goOffline() {
    for database in Database.allOpen { database.goOffline() }
  }

  /// ``Database/goOnline()`` of every open database of the process.
  public class func goOnline() {
    for database in Database.allOpen { database.goOnline() }
  }
}
