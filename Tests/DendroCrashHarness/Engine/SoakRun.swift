import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization
import DendroTestSupport

/// A database driven through the public API as an app would, on a simulated disk, beside the oracle.
final class SoakRun {
  private let disk: SimulatedDisk
  private var database: Database?
  /// The one that was released without closing it.
  private weak var abandoned: Database?
  private var model = ModelTree.empty
  private var tickCount = 0
  private var transactionCount = 0
  /// Those that have not been answered.
  private let transactions = DispatchGroup()
  private var backupCount = 0
  private var listeners: [SoakListener] = []
  /// Those that were removed since their events were last checked.
  private var removed: [SoakListener] = []
  /// The numbers of the writes in the order of their answers.
  private let answers = Answers()
  private var submittedCount = 0
  private(set) var problems: [String] = []
  private(set) var details: [String: Int] = [:]

  private final class Answers: Sendable {
    let state = Mutex((next: 0, lsn: LogSequenceNumber.zero, problem: String?.none))
  }

  private static let tick = Path(keys: [Key(of: "tick")])
  private static let transacted = Path(keys: [Key(of: "transacted")])

  init(seed: UInt64) {
    disk = SimulatedDisk(seed: seed)
  }

  func run(_ step: Soak.Step) {
    do {
      let database = try opened()
      switch step {
      case .write(let write): submit(write, to: database)
      case .tick:
        tickCount += 1
        // Whatever else happens to it, it never falls.
        submit(.set(Self.tick, Node(.integer(Int64(tickCount)))), to: database)
      case .transact: transact(on: database)
      case .query(let path, let parameters): ask(path, parameters, of: database)
      case .listen(let path, let parameters, let kind):
        let listener = SoakListener(kind, to: query(path, parameters, of: database))
        listener.begin()
        listeners.append(listener)
        if listeners.count > 8 { run(.removeListener) }
      case .removeListener:
        guard !listeners.isEmpty else { return }
        let listener = listeners.removeFirst()
        listener.end()
        removed.append(listener)
        details["events", default: 0] += listener.eventCount
      case .compare: compare(database)
      case .synchronize: try database.synchronize()
      case .checkpoint: try database.checkpoint()
      case .backup:
        settle(database)
        backupCount += 1
        try database.backup(to: "/backup-\(backupCount)")
        let root = database.engine?.head.root
        let copy = try Self.open(disk, "/backup-\(backupCount)")
        if copy.engine?.head.root != root { problems.append("a backup has another tree") }
        try copy.close()
        details["backups", default: 0] += 1
      case .close:
        compare(database)
        try database.close()
        forget()
      case .abandon:
        // A listener would keep it open.
        for listener in listeners { listener.end() }
        removed += listeners
        settle(database)
        judgeRemoved()
        forget()
        abandoned = database
        details["abandonings", default: 0] += 1
      }
    } catch {
      problems.append("\(step): \(error)")
    }
  }

  /// Releases everything.
  func finish() {
    try? database?.close()
    forget()
    let answered = answers.state.withLock { $0.next }
    if answered != submittedCount {
      problems.append("\(answered) of \(submittedCount) writes were answered")
    }
  }

  private func forget() {
    for listener in listeners { details["events", default: 0] += listener.eventCount }
    listeners = []
    database = nil
    details["reopenings", default: 0] += 1
  }

  private func opened() throws -> Database {
    if let database { return database }
    let database: Database
    do {
      database = try Self.open(disk, "/database")
    } catch let error as DatabaseError where error.code == .locked {
      problems.append(
        abandoned == nil
          ? "a released database keeps its lock" : "a released database is still referenced")
      throw error
    }
    if let root = database.engine?.head.root, ModelTree(root) != model {
      problems.append("reopened, the tree is not the oracle's")
    }
    answers.state.withLock { $0.lsn = database.engine?.head.lsn ?? .zero }
    self.database = database
    return database
  }

  private static func open(_ disk: SimulatedDisk, _ path: String) throws -> Database {
    var options = DatabaseOptions()
    // Now and then a checkpoint by itself.
    options.checkpointByteMin = 64 << 10
    options.checkpointFactor = 1
    // The engine's thread lets the directory go a moment after the last reference went.
    let deadline = ContinuousClock.now + .seconds(120)
    while true {
      do throws(DatabaseError) {
        return try Database.open(
          at: path, options: options, environment: disk.environment, mode: .readWrite)
      } catch {
        guard error.code == .locked, ContinuousClock.now < deadline else { throw error }
        Thread.sleep(forTimeInterval: 0.001)
      }
    }
  }

  private func submit(_ write: Write, to database: Database) {
    guard let engine = database.engine else { return }
    let mayBeRefused: Bool
    if case .setPriority(let path, _) = write, model.node(at: ModelTree.path(path)).isEmpty {
      mayBeRefused = true  // there is nothing that could have a priority
    } else {
      mayBeRefused = false
      model.apply(write)
    }
    let number = submittedCount
    submittedCount += 1
    engine.submit(Draft(write)) { [answers] result in
      answers.state.withLock { state in
        if number != state.next {
          state.problem = "write \(number) was answered, \(state.next) was next"
        }
        state.next = number + 1
        switch result {
        case .success(let lsn?):
          // Between two there may be those of transactions.
          if lsn <= state.lsn {
            state.problem = "write \(lsn) was answered after \(state.lsn)"
          }
          state.lsn = lsn
        case .success(nil): break
        case .failure(let error):
          if case .noData = error, mayBeRefused { break }
          state.problem = "refused: \(error)"
        }
      }
    }
  }

  private func transact(on database: Database) {
    transactionCount += 1
    details["transactions", default: 0] += 1
    model.apply(.set(Self.transacted, Node(.integer(Int64(transactionCount)))))
    transactions.enter()
    reference(Self.transacted, of: database).runTransactionBlock { data in
      data.value = (data.value as? Int ?? 0) + 1
      return .success(withValue: data)
    } andCompletionBlock: { [transactions, answers] error, isCommitted, _ in
      if error != nil || !isCommitted {
        let problem = "a transaction ended with \(error.map { "\($0)" } ?? "an abort")"
        answers.state.withLock { $0.problem = problem }
      }
      transactions.leave()
    }
  }

  private func query(
    _ path: Path, _ parameters: QueryParameters, of database: Database
  ) -> DatabaseQuery {
    var query: DatabaseQuery = reference(path, of: database)
    switch parameters.order {
    case .key: query = query.queryOrderedByKey()
    case .value: query = query.queryOrderedByValue()
    case .priority: query = query.queryOrderedByPriority()
    case .child(let path):
      query = query.queryOrdered(byChild: path.keys.map(\.string).joined(separator: "/"))
    }
    switch parameters.limit {
    case .first(let count): query = query.queryLimited(toFirst: UInt(count))
    case .last(let count): query = query.queryLimited(toLast: UInt(count))
    case nil: break
    }
    return query
  }

  private func ask(_ path: Path, _ parameters: QueryParameters, of database: Database) {
    settle(database)
    details["queries", default: 0] += 1
    guard let node = try? database.engine?.view(at: path) else { return }
    let expected = ModelQuery.children(of: node, parameters).map(\.key)
    let found = read(query(path, parameters, of: database)).map(\.key)
    // As bytes: strings would merge keys that are only canonically equal.
    if found.map({ Array($0.utf8) }) != expected.map({ Array($0.utf8) }) {
      problems.append("\(parameters) at \(path) shows \(found), not \(expected)")
    }
  }

  /// Waits until all that was queued for listeners has been delivered, and all writes are answered.
  private func settle(_ database: Database) {
    transactions.wait()
    do {
      try database.synchronize()
    } catch {
      problems.append("synchronize: \(error)")
    }
    let done = DispatchSemaphore(value: 0)
    database.reference().getData { _, _ in done.signal() }
    done.wait()
  }

  private func compare(_ database: Database) {
    settle(database)
    details["comparisons", default: 0] += 1
    let (next, problem) = answers.state.withLock { ($0.next, $0.problem) }
    if let problem { problems.append(problem) }
    if next != submittedCount {
      problems.append("\(next) of \(submittedCount) writes were answered")
    }
    guard let root = database.engine?.head.root else { return }
    if ModelTree(root) != model { problems.append("the head is not the oracle's tree") }
    do {
      try root.checkInvariants()
    } catch {
      problems.append("the tree's invariants: \(error)")
    }
    judgeRemoved()
    for listener in listeners {
      if let problem = listener.problem(comparedWith: read(listener.query)) {
        problems.append("a listener to \(listener.query): \(problem)")
      }
    }
  }

  /// Once all events have arrived.
  private func judgeRemoved() {
    for listener in removed {
      if let problem = listener.lateProblem {
        problems.append("a listener to \(listener.query): \(problem)")
      }
    }
    removed = []
  }

  private func read(_ query: DatabaseQuery) -> DataSnapshot {
    let done = DispatchSemaphore(value: 0)
    let box = Mutex<DataSnapshot?>(nil)
    query.getData { _, snapshot in
      box.withLock { $0 = snapshot }
      done.signal()
    }
    done.wait()
    return box.withLock { $0! }
  }

  private func reference(_ path: Path, of database: Database) -> DatabaseReference {
    path.keys.reduce(database.reference()) { $0.child($1.string) }
  }
}
