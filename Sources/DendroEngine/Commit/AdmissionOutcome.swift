import DendroStorage
import DendroTree

/// What admission did with a write, and what its caller does next.
enum AdmissionOutcome {
  /// The head shows the write; or it was refused, and its completion in the open batch says why.
  case settled
  /// The block of the transaction on this thread made the write: the caller keeps it there until that has ended.
  case followsTransaction(BlockWrites)
  /// The caller reports the error at once.
  case refused(EngineError)
  /// The caller waits in `WriteStall`, then offers the write again.
  case waitsForDisk
  /// The caller waits for the end of the transaction or of its reservation, then offers the write again.
  case waitsForTransaction(Reservation)
  /// The caller has the tree's memory measured, then offers the write again.
  case needsMeasure
  /// The caller reads the pages of the tree that the write needs, then offers the write again.
  case needsPages(Node, CheckpointPages)
  /// The caller compares this tree with the one that it sets in its place, then offers the write again.
  case needsComparison(Node)
  /// The caller has the write judged on this head and for this time, then offers the write again.
  case needsJudgement(HeadNode, time: Int64)
  /// The caller has the log take writes to the second root, then offers the write again.
  case needsSecondRoot
}

/// What the caller of a write may still be made to wait for.
struct PermittedWaits {
  var disk = true
  /// A running transaction, or its reservation; false: the write is admitted beside it.
  var transaction = true
  var measure = true
  /// Comparisons of trees, each overtaken by another write, after which the trees are compared under the
  /// lock.
  var comparisonCount = 4
  /// The last comparison.
  var comparison: Comparison?
  /// The probe of a full disk that the caller waits for.
  var probe: UInt64?
  /// The judging of the write; nil if everybody may make it.
  var judging: Judging?
  /// Whether the next of the tasks in `WriteStall` passes once the write was offered again.
  var passesOn = false

  /// Whether the tree that a write sets equals the one in its place.
  struct Comparison {
    let existing: Node
    let isEqual: Bool

    init(_ write: WriteView, with existing: Node) {
      self.existing = existing
      isEqual = write.tree.map { existing == $0 } ?? false
    }
  }

  /// For a caller that does the disk's work itself, and would wait for it for ever.
  static var none: PermittedWaits {
    PermittedWaits(disk: false, transaction: false, measure: false, comparisonCount: 0)
  }

  /// `none` for a write that is judged all the same.
  var none: PermittedWaits {
    var waits = Self.none
    waits.judging = judging
    return waits
  }
}
