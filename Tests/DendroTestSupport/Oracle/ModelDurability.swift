package import DendroTree

/// The oracle of durability: the trees that there were, one after each write, and which of them a crash
/// may leave. It must be one between the last write that was acknowledged before the crash, and the last
/// that was begun.
///
/// Moments are numbers that grow, such as that of the disk's last call.
package struct ModelDurability: Sendable {
  /// The tree after each write; the first is the one before any.
  package private(set) var trees: [ModelTree] = [.empty]
  private var acknowledged = [(moment: 0, write: 0)]
  private var begun = [(moment: -1, write: 0)]

  package init() {}

  /// The last write.
  package var last: Int { trees.count - 1 }

  /// A write that changes something.
  package mutating func write(_ write: Write) {
    trees.append(trees[last])
    trees[last].apply(write)
  }

  /// From now on the disk may have all writes.
  package mutating func begin(at moment: Int) { begun.append((moment, last)) }

  /// A caller was notified that `write` is durable, and with it all before.
  package mutating func acknowledge(_ write: Int, at moment: Int) {
    acknowledged.append((moment, write))
  }

  /// What was found after a kill is all that there is, and is as good as acknowledged.
  package mutating func reopen(with write: Int, at moment: Int) {
    trees.removeSubrange((write + 1)...)
    begin(at: moment)
    acknowledge(write, at: moment)
  }

  /// Another recording continues from here.
  package func continued() -> ModelDurability {
    var next = self
    next.acknowledged = [(0, last)]
    next.begun = [(-1, last)]
    return next
  }

  /// The last write that was ever acknowledged.
  package var lastAcknowledged: Int { acknowledged.last?.write ?? 0 }

  /// The writes after one of which a crash at that moment leaves the tree.
  package func legalWrites(at moment: Int) -> ClosedRange<Int> {
    let least = acknowledged.last { $0.moment <= moment }?.write ?? 0
    return least...max(least, begun.last { $0.moment < moment }?.write ?? 0)
  }
}
