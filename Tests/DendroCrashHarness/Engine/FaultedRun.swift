package import DendroEngine
import DendroStorage
package import DendroTesting
package import DendroTree

/// A workload on a disk that fails, checked at each step: refused writes were not made, acknowledged ones
/// were, and head, events and reopened tree agree.
package struct FaultedRun {
  package let disk: SimulatedDisk
  /// The tree of everything acknowledged.
  package private(set) var tree = Node.empty
  /// The trees that may be found besides: of refused writes that may have reached the disk, in their
  /// order, while nothing was acknowledged after them.
  package private(set) var doubtful: [Node] = []
  /// All trees that were acknowledged: under a weaker durability a failed synchronize may take back
  /// any of them that was not known to be durable, and says so.
  private var history: [Node] = [.empty]
  package private(set) var problems: [String] = []
  package private(set) var refusedCount = 0
  package private(set) var acknowledgedCount = 0
  package private(set) var isPoisoned = false
  package private(set) var session: Session?
  /// Whether the last session was closed in order, and nothing failed.
  private var isClosed = false
  private let options: EngineOptions
  /// Whether each write is made to both roots.
  private let mirrors: Bool

  package init(
    _ disk: SimulatedDisk, durability: Durability = .everyCommit, mirrors: Bool = false
  ) {
    self.disk = disk
    self.mirrors = mirrors
    var options = EngineRecording.options()
    options.durability = durability
    self.options = options
  }

  package mutating func run(_ steps: [Step]) {
    for step in steps {
      if session == nil, !reopen() { continue }
      guard let current = session else { continue }
      do throws(EngineError) {
        switch step {
        case .write(let writes): write(writes, current)
        case .synchronize: try current.engine.synchronize()
        case .checkpoint: try current.engine.checkpoint()
        case .roll: try current.engine.roll()
        case .close, .kill:
          session = nil
          isPoisoned = false
          try current.engine.close()
          isClosed = true
        }
      } catch {
        note(error)
      }
      compareHead()
    }
  }

  /// Opens what there is; a refusal is no damage while the disk fails.
  package mutating func reopen() -> Bool {
    do throws(EngineError) {
      let session = Session(
        try EngineRecording.open(disk, options), disk, mirrors: mirrors)
      isPoisoned = false
      if isClosed, let torn = session.engine.report.tornTail {
        problems.append("closed in order, and yet \(torn)")
      }
      isClosed = false
      let root = session.engine.head.root
      if root != tree {
        if doubtful.contains(where: { $0 == root }) || mayBeOlder(root) {
          tree = root
        } else {
          problems.append("reopened, there is a tree that was never acknowledged nor begun")
        }
      }
      doubtful = []
      self.session = session
      return true
    } catch {
      if error.isDamage { problems.append("reopening: \(error)") }
      if disk.hasFaults { return false }
      problems.append("reopening without a fault: \(error)")
      return false
    }
  }

  /// Releases the engine as a killed process would.
  package mutating func drop() {
    session = nil
    isPoisoned = false
  }

  private mutating func write(_ writes: [Write], _ session: Session) {
    for write in writes { session.submit(write, expecting: nil) }
    session.engine.pump()
    let answers = session.takeAnswers()
    guard answers.count == writes.count else {
      problems.append("\(answers.count) of \(writes.count) writes were answered")
      return
    }
    for (write, answer) in zip(writes, answers) {
      switch answer.result {
      case .success(let lsn):
        if isPoisoned, lsn != nil { problems.append("acknowledged after the disk had failed") }
        acknowledgedCount += 1
        if !doubtful.isEmpty, lsn != nil {
          // What was cut back cannot come any more.
          doubtful = []
        }
        _ = tree.apply(write)
        history.append(tree)
      case .failure(let error):
        if case .noData = error { continue }
        refusedCount += 1
        var after = doubtful.last ?? tree
        if !after.apply(write).isEmpty { doubtful.append(after) }
        note(error)
      }
    }
  }

  private mutating func note(_ error: EngineError) {
    switch error {
    case .poisoned: isPoisoned = true
    case .diskFull, .closed: break
    case .storage(.corrupt), .storage(.missing):
      problems.append("a failing call was taken for damage: \(error)")
    case .storage: break
    default: problems.append("an unexpected error: \(error)")
    }
  }

  private mutating func compareHead() {
    guard let session else { return }
    let root = session.engine.head.root
    if root != tree { problems.append("the head is not the tree of what was acknowledged") }
    if session.replica.tree != root { problems.append("the events do not give the head") }
    if let problem = session.replica.problem { problems.append(problem) }
    if let problem = session.mirrorProblem { problems.append(problem) }
  }

  /// Whether a reopened tree is one of those that may be.
  package func mayBe(_ root: Node) -> Bool {
    root == tree || doubtful.contains { $0 == root } || mayBeOlder(root)
  }

  private func mayBeOlder(_ root: Node) -> Bool {
    options.durability != .everyCommit && history.contains { $0 == root }
  }
}
