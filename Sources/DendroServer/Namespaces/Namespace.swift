package import Dendro
import DendroEngine
package import DendroTree
import Dispatch
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
  /// For writes that may wait for this database's disk, in their order.
  let writing = DispatchQueue(label: "dendro-writing")
  /// For work that takes long.
  let turns: FairQueue

  package convenience init(_ name: String, _ database: Database) throws(DatabaseError) {
    try self.init(name, database, losses: nil)
  }

  init(_ name: String, _ database: Database, losses: Losses?) throws(DatabaseError) {
    self.name = name
    self.losses = losses
    self.database = database
    engine = try database.servedEngine()
    turns = FairQueue(threadCount: max(1, processorCount / 2))
    hub = ListenHub(engine, turns)
    database.serve(commitsTo: hub)
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
    // The last writes of sessions.
    writing.sync {}
    database.serve(commitsTo: nil)
    hub.end()
    guard let journal else { return }
    journal.retry()
    // The completion comes after those of the sessions' last writes.
    let isWritten = DispatchSemaphore(value: 0)
    engine.submit(Draft(.update(.root, []))) { _ in isWritten.signal() }
    isWritten.wait()
  }
}
