package import DendroEngine
package import DendroStorage
package import DendroTesting
package import DendroTree
import Synchronization
import DendroTestSupport

/// One opening of the engine with a replica that listens.
package final class Session {
  package struct Answer: Sendable {
    package var expected: Int?
    package var result: Result<LogSequenceNumber?, EngineError>
    /// How many calls the disk had seen.
    package var operation: Int
  }

  package let engine: Engine
  package let replica: Replica
  private let disk: SimulatedDisk
  private let answers = Answers()
  private let transcript: Transcript?
  /// Whether each write is made to both roots, which are equal then at any time.
  private let mirrors: Bool

  private final class Answers: Sendable {
    let list = Mutex<[Answer]>([])
  }

  package init(
    _ engine: Engine, _ disk: SimulatedDisk, _ transcript: Transcript? = nil, mirrors: Bool = false
  ) {
    self.mirrors = mirrors
    self.engine = engine
    self.disk = disk
    self.transcript = transcript
    let (root, lsn) = engine.head
    replica = Replica(root, lsn: lsn, transcript, passesOver: mirrors)
    engine.setObserver(replica)
  }

  package func submit(_ write: Write, expecting expected: Int?) {
    let (answers, disk, transcript) = (answers, disk, transcript)
    let completion: Completion = { result in
      transcript?.note("answered \(result)")
      let answer = Answer(expected: expected, result: result, operation: disk.operationCount)
      answers.list.withLock { $0.append(answer) }
    }
    let data = EncodedWrite(write)
    engine.submit(
      mirrors ? EncodedWrite(data, system: EncodedWrite(write)) : data, completion: completion)
  }

  /// Why the roots are not equal; nil where they are, or need not be.
  package var mirrorProblem: String? {
    mirrors ? Self.mirrorProblem(of: engine) : nil
  }

  package static func mirrorProblem(of engine: Engine) -> String? {
    engine.systemNode(at: .root) == engine.head.root
      ? nil : "after write \(engine.head.lsn) the second root is not as the data"
  }

  package func takeAnswers() -> [Answer] {
    answers.list.withLock { list in
      defer { list = [] }
      return list
    }
  }
}

/// A second tree that is made from the observer's commits alone.
package final class Replica: CommitObserver {
  private let state: Mutex<(tree: Node, lsn: LogSequenceNumber, problem: String?)>

  private let transcript: Transcript?
  /// Whether there are writes that change no data, which it does not see.
  private let passesOver: Bool

  package init(
    _ tree: Node, lsn: LogSequenceNumber, _ transcript: Transcript? = nil, passesOver: Bool = false
  ) {
    self.passesOver = passesOver
    state = Mutex((tree, lsn, nil))
    self.transcript = transcript
  }

  package var tree: Node { state.withLock { $0.tree } }
  package var problem: String? { state.withLock { $0.problem } }

  package func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
    let (lsn, isUndo, changes) = (commit.lsn, commit.isUndo, commit.changes)
    if let transcript {
      transcript.note("\(isUndo ? "undone" : "committed") \(lsn) at \(commit.time)")
      for change in changes {
        transcript.note("\(change.path): \(ModelTree(change.replaced)) to \(ModelTree(change.new))")
      }
    }
    state.withLock { state in
      // An undo names the oldest of the writes that it undoes, which are the last ones.
      let follows =
        isUndo
        ? lsn > .zero && lsn <= (passesOver ? state.lsn.next : state.lsn)
        : passesOver ? lsn > state.lsn : lsn == state.lsn.next
      if !follows {
        state.problem = "committed got write \(lsn) after \(state.lsn), undo: \(isUndo)"
      }
      state.lsn = isUndo ? LogSequenceNumber(lsn.rawValue - 1) : lsn
      for change in changes {
        if state.tree.node(at: change.path) != change.replaced {
          state.problem = "write \(lsn) reports another node replaced at \(change.path)"
        }
        state.tree.graft(change.new, at: change.path)
      }
    }
    return false
  }
}
