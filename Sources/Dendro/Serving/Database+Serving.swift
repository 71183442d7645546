package import DendroEngine
import DendroStorage
package import DendroTree
import Foundation
import Synchronization

// What a server of the database needs beyond the public API: the engine itself, the commits in their order, and
// writes that depend on what is there.

extension Database {
  /// A database that shows one state, and takes no writes.
  package static func showing(_ state: HistoryState) -> Database {
    let options = DatabaseOptions()
    let hub = EventHub(errorHandler: nil)
    let orderCache = options.makeOrderCache()
    let engine = Engine.showing(
      state, options: options.engineOptions(reportingTo: hub, orderCache))
    return Database(
      engine: engine, hub: hub, orderCache: orderCache, environment: .system, options: options)
  }

  /// The engine.
  ///
  /// - Throws: if the database could not be opened, or was closed.
  package func servedEngine() throws(DatabaseError) -> Engine { try usable() }

  /// Shows every commit from now on to `observer` as well, after the database's own listeners, until `endServing`.
  ///
  /// - Returns: false, and nothing has changed, if another observer gets them.
  package func serve(commitsTo observer: any CommitObserver) -> Bool {
    guard !isServed.exchange(true, ordering: .acquiringAndReleasing) else { return false }
    engine?.setObserver(CommitObserverPair(hub, observer))
    return true
  }

  package func endServing() {
    engine?.setObserver(hub)
    isServed.store(false, ordering: .releasing)
  }

  /// A new child key; see ``DatabaseReference/childByAutoId()``.
  package func newPushID() -> String { nextPushID() }

  /// A snapshot of what was read at `path`.
  package func snapshot(_ node: Node, at path: Path) -> DataSnapshot {
    DataSnapshot(node, at: DatabaseReference(self, path))
  }

  /// Writes what `decide` makes of the node at `path`, as a transaction.
  ///
  /// - Parameters:
  ///   - judge: asked whether what `decide` returns may be written; nil if everybody may.
  ///   - system: what the same write changes in the second root.
  ///   - origin: who makes the write, if that is kept in the log.
  ///   - decide: called with the node, again if another write comes between; returns a set or a removal at
  ///     the path, or nil for no write.
  ///   - admitted: called once, when readers see the write or there is none. It may not wait.
  ///   - completion: called once, on any thread, with whether there was a write, and the node at the path after
  ///     it; without a write, with the node that `decide` was given. It may not wait.
  package func transact(
    at path: Path, judge: (any WriteJudge)? = nil, system: EncodedWrite? = nil,
    origin: WriteOrigin? = nil, decide: @escaping @Sendable (Node) -> Draft?,
    admitted: @escaping @Sendable () -> Void = {},
    completion: @escaping @Sendable (Result<(isWritten: Bool, node: Node), DatabaseError>) -> Void
  ) {
    // Either it runs, or it is withdrawn.
    let isTaken = Atomic<Bool>(false)
    let take = { @Sendable in !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
    let run = { @Sendable [self] (job: TransactionJob) in
      guard take() else { return }
      defer { admitted() }
      let engine: Engine
      do throws(DatabaseError) {
        engine = try usable()
      } catch {
        return completion(.failure(error))
      }
      engine.transact(at: path) {
        completion(.failure(DatabaseError($0)))
      } begun: {
        job.begins()
      } decide: { input in
        let draft = decide(input)
        let isWritten = draft != nil
        return TransactionDecision(draft, judge: judge, system: system, origin: origin) { result in
          completion(result.map { (isWritten, $0) }.mapError { DatabaseError($0) })
        }
      }
    }
    transactions.start(
      TransactionJob(at: path, hasPlace: false, run: run) { error in
        guard take() else { return }
        defer { admitted() }
        completion(.failure(error as? DatabaseError ?? .closed))
      })
  }
}

extension DatabaseError {
  /// The error of an operation that a server has asked the engine for.
  package init(served error: EngineError) { self.init(error) }
}

/// Shows the commits to two observers.
private final class CommitObserverPair: CommitObserver {
  private let first: any CommitObserver
  private let second: any CommitObserver

  init(_ first: any CommitObserver, _ second: any CommitObserver) {
    self.first = first
    self.second = second
  }

  func failed(_ error: EngineError) {
    first.failed(error)
    second.failed(error)
  }

  func wantsCommit(at storedPath: UnsafeRawBufferPointer) -> Bool {
    first.wantsCommit(at: storedPath) || second.wantsCommit(at: storedPath)
  }

  func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
    let isFirst = first.committed(commit, root: root)
    let isSecond = second.committed(commit, root: root)
    return isFirst || isSecond
  }

  func afterAdmission() {
    first.afterAdmission()
    second.afterAdmission()
  }
}
