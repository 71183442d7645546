package import Dendro
import DendroEngine
import DendroStorage
package import DendroTree
import Dispatch
import Synchronization

/// One served database.
package final class Namespace: Sendable {
  package let name: String
  package let database: Database
  let engine: Engine
  let hub: ListenHub
  let settings: NamespaceSettings
  /// Nil if the database is not on the disk.
  let journal: DisconnectJournal?
  /// Nil if the database cannot be written.
  let results: WriteResults?
  /// What is missing, if it is what is left of a damaged database.
  let losses: Losses?
  private let peer: @Sendable () -> PeerStatus?
  /// Whether this server led when that was looked at last.
  let wasLeading = Atomic<Bool>(false)
  private let wasLoaded = Atomic<Bool>(false)
  /// The last write when `takeChange` was called.
  private let lastLSN = Atomic<UInt64>(0)
  private let wasPrepared = Atomic<Bool>(false)
  /// Held while it is prepared.
  private let preparation = Mutex(())
  /// Makes what clients of other servers ask for; nil until the first client may come.
  let peerRequests = Mutex<PeerRequests?>(nil)
  /// Empty if no other server has the database.
  let unanswered = UnansweredWrites()
  private let uses = Mutex((count: 0, end: ContinuousClock.now))
  /// For writes that may wait for this database's disk, in their order.
  let writing = DispatchQueue(label: "dendro-writing")
  /// The sessions that have ended and whose last write is not made yet.
  let leaving = DispatchGroup()
  /// For work that takes long.
  let turns: FairQueue
  /// For messages that wait for others, or are long.
  let messages: FairQueue

  /// - Parameters:
  ///   - name: by which requests ask for the database.
  ///   - database: is served.
  ///   - peer: what part this server has in the database; nil if no other server has it.
  /// - Throws: `DatabaseError` if the database is closed; `DatabaseServerError` if another server serves it.
  package convenience init(
    _ name: String, _ database: Database,
    peer: @escaping @Sendable (Database) -> PeerStatus? = { _ in nil }
  ) throws {
    try self.init(name, database, losses: nil, peer: peer)
  }

  init(
    _ name: String, _ database: Database, losses: Losses?,
    peer: @escaping @Sendable (Database) -> PeerStatus? = { _ in nil }
  ) throws {
    self.name = name
    self.losses = losses
    self.peer = { peer(database) }
    self.database = database
    engine = try database.servedEngine()
    turns = FairQueue()
    let threads = DispatchQueue(label: "dendro-messages", attributes: .concurrent)
    messages = FairQueue { threads.async(execute: $0) }
    hub = ListenHub(engine, turns)
    guard database.serve(commitsTo: hub) else {
      throw DatabaseServerError(
        "another server serves the database: stop that first, or let it listen at several addresses"
      )
    }
    settings = NamespaceSettings(engine, mayHaveOtherRules: losses?.mayHaveOtherRules ?? false)
    journal = DisconnectJournal(engine)
    results = WriteResults(engine)
  }

  /// What part this server has in the database; nil if no other server has it.
  package var peerStatus: PeerStatus? { peer() }

  // MARK: Before the first client

  /// Whether clients can be let in.
  var isPrepared: Bool { wasPrepared.load(ordering: .acquiring) }

  /// Does what comes before the first client: reads the data that rules may look at, and writes what clients of a server that
  /// has crashed had registered, as far as `rights` allows it. It may wait for the disk.
  ///
  /// - Parameter queue: for what may wait.
  func prepare(_ rights: Rights, _ authenticator: Authenticator, on queue: DispatchQueue) {
    if isPrepared { return }
    preparation.withLock { _ in
      if isPrepared { return }
      if rights.rules != nil { loadAll() }
      // Those of a database that several servers have may be of sessions of the server that leads.
      if isShared {
        let requests = PeerRequests(self, rights, authenticator, on: queue)
        peerRequests.withLock { $0 = requests }
        engine.sharedLog?.handleRequests(with: requests)
      } else {
        journal?.writeLeftovers(rights, authenticator, on: queue) { _ in true }
      }
      wasPrepared.store(true, ordering: .releasing)
    }
  }

  /// Reads what is not in memory yet. What cannot be read is an error of the reading that needs it.
  func loadAll() { _ = try? engine.wholeHead() }

  /// Whether writes have come since it was asked last.
  func takeChange() -> Bool {
    let lsn = engine.head.lsn.rawValue
    return lastLSN.exchange(lsn, ordering: .relaxed) != lsn
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

  // MARK: Use

  /// Called by a lease only.
  func beginUse() { uses.withLock { $0.count += 1 } }

  /// Called by a lease only.
  ///
  /// - Returns: whether it was the last use.
  func endUse() -> Bool {
    uses.withLock { uses in
      uses.count -= 1
      guard uses.count == 0 else { return false }
      uses.end = .now
      return true
    }
  }

  /// The end of the last use; nil if the database may not be closed: something uses it, last writes of sessions wait for
  /// room on the disk, or its data would be lost.
  var idleSince: ContinuousClock.Instant? {
    let (count, end) = uses.withLock { $0 }
    return count == 0 && !hasRefusedWrites && !isVolatile ? end : nil
  }

  private var hasRefusedWrites: Bool { (journal?.refusedCount ?? 0) > 0 }

  /// Whether there is something, and it is in memory alone.
  private var isVolatile: Bool {
    engine.path == nil
      && !(engine.withHead { root, _ in root.isEmpty } && engine.systemNode(at: .root).isEmpty)
  }

  // MARK: The end

  /// Waits for the writes under way.
  ///
  /// - Returns: false if last writes of sessions were refused for lack of room.
  func settle() -> Bool {
    if passesOn {
      // What sessions have told the server that leads.
      let isTold = DispatchSemaphore(value: 0)
      engine.submit(Draft(.update(.root, []))) { _ in isTold.signal() }
      _ = isTold.wait(timeout: .now() + .seconds(2))
      return !hasRefusedWrites
    }
    // What is written where another server leads would wait for that one.
    if isShared, engine.writeRefusal != nil { return !hasRefusedWrites }
    // The completion comes after those of all earlier writes.
    let isWritten = DispatchSemaphore(value: 0)
    engine.submit(Draft(.update(.root, []))) { _ in isWritten.signal() }
    isWritten.wait()
    return !hasRefusedWrites
  }

  /// Ends the listens; the database stays open.
  func end() {
    // The last writes of sessions: they come behind what clients have sent before they left.
    writing.sync {}
    _ = leaving.wait(timeout: .now() + .seconds(10))
    database.endServing()
    engine.sharedLog?.handleRequests(with: nil)
    // It holds this object.
    peerRequests.withLock { $0 = nil }
    hub.end()
    guard let journal else { return }
    journal.retry()
    _ = settle()
  }
}
