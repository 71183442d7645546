package import DendroTree

/// Decides whether a write may be made.
///
/// It is asked without a lock, on a state that never changes. If the write would be admitted to another state, for which its
/// judgement does not hold, it is asked again.
package protocol WriteJudge: AnyObject, Sendable {
  /// Judges the write.
  func judge(_ state: JudgedState) -> Judgement
  /// Whether judging is short and calls nothing that may wait. Then it may be done under the admission lock, once other writes
  /// have come between twice.
  var isBounded: Bool { get }
  /// Whether looking in which other states a judgement holds is short, so that it may be done under the admission lock each time.
  var comparesQuickly: Bool { get }
  /// Whether the write is still judged by the same rules as when it was judged last. It is called under the admission lock.
  var isCurrent: Bool { get }
}

extension WriteJudge {
  package var isCurrent: Bool { true }
  package var comparesQuickly: Bool { true }
}

/// What a write is judged on.
package struct JudgedState: Sendable {
  /// The tree before the write. Outside of `WriteJudge.judge`, `head` gives it.
  package var before: Node { head.node }
  /// The tree before the write, some of whose pages may not be in memory.
  package let head: HeadNode
  /// What the write's server values become: the time that the log gives it, in milliseconds since 1970.
  package let time: Int64
  /// Whether it is worth finding out in which other states the judgement holds. The first time, hardly ever another write
  /// comes between; and if comparing takes long, other writes are held back until the third judgement is made, so that only
  /// one that outlasts their patience needs it.
  package let wantsValidity: Bool
  private let write: EncodedWrite
  /// The tree after the write, if it was made already.
  private var made: Node?

  package init(_ head: HeadNode, _ write: EncodedWrite, time: Int64, wantsValidity: Bool = false) {
    self.head = head
    self.write = write
    self.time = time
    self.wantsValidity = wantsValidity
  }

  /// Calls `use` with the leaf that the write sets below the root, if it sets nothing else and the leaf has no priority:
  /// then `after` need not be made.
  ///
  /// - Returns: false for any other write.
  package func withLeaf(_ use: (_ leaf: NodeView, _ path: Path) -> Void) -> Bool {
    write.withLeaf { use($0, write.path) }
  }

  /// The tree after the write.
  ///
  /// - Complexity: that of the write, each time, unless the state was made `whole`.
  package func after() -> Node { made ?? before.applying(write, time: time) }

  /// The same with the tree after the write: for several judges.
  package func whole() -> JudgedState {
    var state = self
    state.made = after()
    return state
  }
}

/// Whether a write may be made, and in which other states that is so too.
package struct Judgement: Sendable {
  /// The states for which a judgement holds.
  package enum Validity: Sendable {
    /// All of them.
    case always
    /// The one that was judged.
    case onlyThere
    /// Those in which what was seen is the same. It is called under the admission lock.
    case wherever(@Sendable (_ before: Node, _ after: () -> Node) -> Bool)
  }

  package var isAllowed: Bool
  package var validity: Validity
  /// Whether it looked at the time of the write, or at a server value.
  package var dependsOnTime: Bool

  package init(isAllowed: Bool, _ validity: Validity, dependsOnTime: Bool = false) {
    self.isAllowed = isAllowed
    self.validity = validity
    self.dependsOnTime = dependsOnTime
  }
}
