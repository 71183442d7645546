import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

/// Allows a write if what is at a path is what the client has seen there, and another judge allows it as well.
///
/// Where the server leads that has the client, a transaction looks at the condition instead.
final class ConditionJudge: WriteJudge {
  private let condition: PassedOnWrite.Condition
  private let path: Path
  private let next: RequestedWrite?
  private let wasStale = Mutex(false)

  init(_ condition: PassedOnWrite.Condition, at path: Path, _ next: RequestedWrite?) {
    self.condition = condition
    self.path = path
    self.next = next
  }

  /// Whether something else was there when it was judged last.
  var isStale: Bool { wasStale.withLock { $0 } }

  /// The hash of what is there may take long.
  var isBounded: Bool { false }

  func judge(_ state: JudgedState) -> Judgement {
    let isStale = !holds(state.before.node(at: path))
    wasStale.withLock { $0 = isStale }
    if isStale { return Judgement(isAllowed: false, .onlyThere) }
    guard let next else { return Judgement(isAllowed: true, .onlyThere) }
    var judgement = next.judge(state)
    judgement.validity = .onlyThere
    return judgement
  }

  private func holds(_ node: Node) -> Bool {
    let shown = condition.isPriority ? node.priority.map { Node($0) } ?? .empty : node
    return switch condition.kind {
    case .hash: TreeHash.hash(shown) == condition.value
    case .etag: TreeHash.etag(shown) == condition.value
    }
  }
}
