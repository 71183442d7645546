import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Synchronization

func path(_ string: String) throws -> Path { try Path(parsing: string) }

func set(_ place: String, _ scalar: Scalar) throws -> Draft {
  Draft(.set(try path(place), Node(scalar)))
}

/// `body` on a thread of its own, which may wait.
func onThread<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: body()) }
  }
}

/// Collects the results of completions and commits, from any thread.
final class Received<Value: Sendable>: Sendable {
  private let values = Mutex<[Value]>([])
  var all: [Value] { values.value }
  func add(_ value: Value) { values.withLock { $0.append(value) } }
}

/// Follows the commits with a tree of its own.
final class Mirror: CommitObserver {
  private let state = Mutex<(root: Node, undone: Int)>((.empty, 0))
  var root: Node { state.withLock { $0.root } }
  var undoneCount: Int { state.withLock { $0.undone } }

  func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
    let changes = commit.changes
    let isUndo = commit.isUndo
    state.withLock { state in
      for change in changes { state.root.graft(change.new, at: change.path) }
      if isUndo { state.undone += 1 }
    }
    return false
  }
}

extension EngineOptions {
  /// For simulations: the test does the disk's work by `pump()`, and takes checkpoints itself.
  static var inline: EngineOptions {
    var options = EngineOptions()
    options.execution = .inline
    options.checkpointFactor = 0
    return options
  }
}

/// Letters without a pattern, so that no compression makes them fit where they should not.
func incompressible(_ count: Int) -> String {
  noiseText(count, seed: 1)
}

/// Has the tree made as it is after the write, and says always the same.
final class FixedJudge: WriteJudge {
  private let isAllowed: Bool
  let isBounded = true

  init(isAllowed: Bool) { self.isAllowed = isAllowed }

  func judge(_ state: JudgedState) -> Judgement {
    withExtendedLifetime(state.after()) { Judgement(isAllowed: isAllowed, .onlyThere) }
  }
}
