import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

/// Allows a write if another judge does, and what is at a path is what the client has seen there.
///
/// Where the server leads that has the client, a transaction looks at the condition instead.
final class ConditionJudge: WriteJudge {
  private let condition: PassedOnWrite.Condition
  private let path: Path
  private let next: RequestedWrite?
  private let last = Mutex<Look?>(nil)

  /// What was there when it was judged last, of which the hash may take long.
  private struct Look {
    let node: Node
    let isExpected: Bool
  }

  init(_ condition: PassedOnWrite.Condition, at path: Path, _ next: RequestedWrite?) {
    self.condition = condition
    self.path = path
    self.next = next
  }

  /// Whether it was refused since something else was there.
  var isStale: Bool { last.withLock { $0.map { !$0.isExpected } ?? false } }

  /// The hash of what is there may take long.
  var isBounded: Bool { false }

  var comparesQuickly: Bool { next?.comparesQuickly ?? true }

  var isCurrent: Bool { next?.isCurrent ?? true }

  func judge(_ state: JudgedState) -> Judgement {
    var judgement = next?.judge(state) ?? Judgement(isAllowed: true, .always)
    // Who may not write it does not learn what is there.
    guard judgement.isAllowed else {
      last.withLock { $0 = nil }
      return judgement
    }
    let node = state.before.node(at: path)
    let path = path
    let isThere = { @Sendable (before: Node) in before.node(at: path).isIdentical(to: node) }
    guard isExpected(node) else {
      return Judgement(isAllowed: false, .wherever { before, _ in isThere(before) })
    }
    switch judgement.validity {
    case .onlyThere: break
    case .always: judgement.validity = .wherever { before, _ in isThere(before) }
    case .wherever(let hold):
      judgement.validity = .wherever { before, after in isThere(before) && hold(before, after) }
    }
    return judgement
  }

  private func isExpected(_ node: Node) -> Bool {
    if let last = last.withLock({ $0 }), last.node.isIdentical(to: node) { return last.isExpected }
    let shown = condition.isPriority ? node.priority.map { Node($0) } ?? .empty : node
    let isExpected =
      switch condition.kind {
      case .hash: TreeHash.hash(shown) == condition.value
      case .etag: TreeHash.etag(shown) == condition.value
      }
    last.withLock { $0 = Look(node: node, isExpected: isExpected) }
    return isExpected
  }
}
