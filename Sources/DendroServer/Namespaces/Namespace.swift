package import Dendro
import DendroEngine
import Dispatch
package import DendroTree
import Synchronization

/// One served database.
package final class Namespace: Sendable {
  package let name: String
  package let database: Database
  let engine: Engine
  let hub: ListenHub
  /// Nil if the database is not on the disk.
  let journal: DisconnectJournal?
  /// What is missing, if it is what is left of a damaged database.
  let losses: Losses?
  private let wasLoaded = Atomic<Bool>(false)

  /// - Throws: `DatabaseError` if the database is closed; `DatabaseServerError` if another server serves it.
  package convenience init(_ name: String, _ database: Database) throws {
    try self.init(name, database, losses: nil)
  }

  init(_ name: String, _ database: Database, losses: Losses?) throws {
    self.name = name
    self.losses = losses
    self.database = database
    engine = try database.servedEngine()
    hub = ListenHub(engine)
    guard database.serve(commitsTo: hub) else {
      throw DatabaseServerError(
        "another server serves the database: stop that first, or let it listen at several addresses"
      )
    }
    journal = DisconnectJournal(engine)
    journal?.writeLeftovers()
  }

  /// Whether all of the data is in memory, so that no reading waits for the disk.
  var isLoaded: Bool {
    if wasLoaded.load(ordering: .relaxed) { return true }
    let isLoaded = engine.statistics().unreadChunkCount == 0
    if isLoaded { wasLoaded.store(true, ordering: .relaxed) }
    return isLoaded
  }

  /// The data now, also after the database was closed.
  ///
  /// - Throws: why some of it could not be read from its file.
  package func root() throws(DatabaseError) -> Node {
    do throws(EngineError) {
      return try engine.view(at: .root)
    } catch {
      throw DatabaseError(served: error)
    }
  }

  /// Ends the listens; the database stays open.
  func end() {
    database.endServing()
    hub.end()
    guard let journal else { return }
    journal.retry()
    // The completion comes after those of the sessions' last writes.
    let isWritten = DispatchSemaphore(value: 0)
    engine.submit(Draft(.update(.root, []))) { _ in isWritten.signal() }
    isWritten.wait()
  }
}
