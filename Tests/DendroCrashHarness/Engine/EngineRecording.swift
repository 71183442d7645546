package import DendroEngine
import DendroStorage
package import DendroTesting
package import DendroTree
import Synchronization
package import DendroTestSupport

/// An engine that was driven through a workload once on a simulated disk, with all that is needed to
/// judge what a crash at any of its calls leaves.
///
/// While it runs, completions and events are judged: each write is answered once and in order, and
/// the changes that the observer gets, replayed into a second tree, give the head.
package struct EngineRecording: Sendable {
  package static let directory = "/database"

  package let disk: SimulatedDisk
  package private(set) var points: [CrashPoint] = []
  /// The tree after each write; the first is the empty one. Each was held against the oracle.
  package private(set) var trees: [Node] = [.empty]
  /// Which of them a crash may leave, by the number of the disk's calls; and the oracle's own trees.
  package private(set) var durability = ModelDurability()
  /// From which operation on a checkpoint of which write was said to be durable.
  private var checkpointed: [(operation: Int, lsn: Int)] = [(0, 0)]
  /// What did not hold while it ran.
  package private(set) var problems: [String] = []
  /// Whether each write is made to both roots.
  package let mirrors: Bool
  /// All its answers and the observer's commits, if they are recorded.
  package let transcript: Transcript?

  package static func options() -> EngineOptions {
    var options = EngineOptions()
    options.execution = .inline
    options.checkpointFactor = 0
    return options
  }

  /// The same, for a database whose checkpoint is read and checked as a whole.
  package static func whole() -> EngineOptions {
    var options = options()
    options.loading = .whole
    return options
  }

  package static func open(_ disk: SimulatedDisk, _ options: EngineOptions = options())
    throws(EngineError) -> Engine
  {
    try Engine.open(at: directory, options: options, environment: disk.environment)
  }

  /// Whether the workload of a seed is made to both roots: a quarter of the plain ones, and half of the richer ones.
  package static func mirrors(_ seed: UInt64) -> Bool { seed % 4 == 1 || seed % 8 == 7 }

  /// Drives an engine through the steps.
  ///
  /// - `prepared`: a recording that ended with a database closed in order, to go on from.
  /// - `transcript`: if to record the answers and the observer's commits.
  /// - `mirrors`: whether each write is made to both roots; sweeps do as `mirrors(_:)` says of their seeds.
  package init(
    seed: UInt64, steps: [Step], after prepared: EngineRecording? = nil,
    transcript: Transcript? = nil, mirrors: Bool = false
  ) throws(EngineError) {
    self.transcript = transcript
    self.mirrors = mirrors || prepared?.mirrors == true
    disk = prepared?.disk.copy(seed: seed) ?? SimulatedDisk(seed: seed)
    if let prepared {
      trees = prepared.trees
      durability = prepared.durability.continued()
    }
    var session: Session?
    for step in steps + [.close] {
      if case .kill(let call, let bytes) = step {
        disk.inject(DiskFault(.partial(bytes, 5), at: call, isPermanent: true))
        continue
      }
      do throws(EngineError) {
        if session == nil { session = try reopen() }
        try run(step, &session)
      } catch {
        // Killed, if a kill was due; the next opener continues with the files in the system's memory.
        guard disk.operationCount > 0, disk.hasFaults else { throw error }
        session = nil
        disk.removeFaults()
      }
    }
    session = nil
    disk.removeFaults()
    points = disk.crashPoints()
  }

  package func checkpointed(at operation: Int) -> Int {
    checkpointed.last { $0.operation <= operation }?.lsn ?? 0
  }

  /// The trees that may be found once it has ended: the last one, and if it ended with a kill, those
  /// before it that were not taken back, from the last acknowledged on.
  package var finalTrees: ArraySlice<Node> { trees[durability.lastAcknowledged...] }

  // MARK: Running

  private mutating func reopen() throws(EngineError) -> Session {
    let engine = try Self.open(disk)
    let (root, lsn) = engine.head
    let last = Int(lsn.rawValue)
    if last < durability.lastAcknowledged || last >= trees.count || root != trees[last] {
      problems.append("a kill without a crash left another tree at write \(last)")
    }
    trees.removeSubrange((last + 1)...)
    durability.reopen(with: last, at: disk.operationCount)
    return Session(engine, disk, transcript, mirrors: mirrors)
  }

  private mutating func run(_ step: Step, _ session: inout Session?) throws(EngineError) {
    guard let current = session else { return }
    switch step {
    case .write(let writes): try write(writes, current)
    case .synchronize: try current.engine.synchronize()
    case .checkpoint:
      try current.engine.checkpoint()
      checkpointed.append((disk.operationCount, trees.count - 1))
    case .roll: try current.engine.roll()
    case .close:
      try current.engine.close()
      session = nil
    case .kill: break
    }
  }

  private mutating func write(_ writes: [Write], _ session: Session) throws(EngineError) {
    var received: [Session.Answer] = []
    let addsSecondRoot = mirrors && !session.engine.takesSecondRoot
    if addsSecondRoot {
      // The first write to the second root comes behind one that changes nothing.
      durability.write(.update(.root, []))
      trees.append(trees.last!)
      durability.begin(at: disk.operationCount)
    }
    for write in writes {
      var tree = trees.last!
      // A write that changes nothing has no number.
      var expected: Int?
      if case .setPriority(let path, _) = write, tree.node(at: path).isEmpty {
        session.submit(write, expecting: nil)
        continue
      }
      if !tree.apply(write).isEmpty {
        durability.write(write)
        if ModelTree(tree) != durability.trees.last {
          problems.append("\(write) gives another tree than the oracle")
        }
        trees.append(tree)
        expected = trees.count - 1
      }
      session.submit(write, expecting: expected)
    }
    durability.begin(at: disk.operationCount)
    session.engine.pump()
    received = session.takeAnswers()
    for answer in received {
      switch answer.result {
      case .success(let lsn):
        if lsn.map({ Int($0.rawValue) }) != answer.expected {
          problems.append("write \(answer.expected ?? 0) was answered as \(lsn ?? .zero)")
        }
        if let lsn { durability.acknowledge(Int(lsn.rawValue), at: answer.operation) }
      case .failure(let error):
        if case .noData = error { continue }
        throw error
      }
    }
    if received.count != writes.count {
      problems.append("\(received.count) of \(writes.count) writes were answered")
    }
    let (root, lsn) = session.engine.head
    if root != trees.last! || Int(lsn.rawValue) != trees.count - 1 {
      problems.append("the head is not the tree after write \(trees.count - 1)")
    }
    if let problem = session.mirrorProblem { problems.append(problem) }
    if session.replica.tree != root {
      problems.append("the events to write \(lsn) do not give the head")
    }
    if let problem = session.replica.problem { problems.append(problem) }
  }
}
