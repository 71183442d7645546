package import DendroTree
import Synchronization

/// The children of one path in one sort order, shared by all its listeners and iterators, each of which may
/// be at another state. It keeps the order of the state that was requested last.
///
/// Any thread may use it.
package final class SharedOrder: Sendable {
  let order: SortOrder
  private let tally: ComparisonTally
  private let kept = Mutex<SiblingOrder?>(nil)

  init(_ order: SortOrder, tally: ComparisonTally) {
    self.order = order
    self.tally = tally
  }

  /// The children of a state, in order.
  ///
  /// - Parameter step: a state, and how each child that changed since moved: used where it is the state
  ///   that is kept.
  /// - Complexity: O(1) for the state that is kept; O(children that differ · log n) for another one;
  ///   O(n log n) for the first.
  func siblings(of node: Node, after step: (old: Node, shifts: [Shift])? = nil) -> SiblingOrder {
    kept.withLock { kept in
      guard var siblings = kept.take() else {
        let new = SiblingOrder(order, of: node, tally: tally)
        kept = new
        return new
      }
      if !siblings.node.isIdentical(to: node) {
        if let step, step.old.isIdentical(to: siblings.node) {
          siblings.advance(to: node, step.shifts)
        } else {
          siblings.advance(to: node)
        }
      }
      kept = siblings
      return siblings
    }
  }

  var hasIndex: Bool { kept.withLock { $0?.hasIndex ?? false } }
}

/// The orders of one path that are in use. The references are weak: an order is freed with the last
/// generator that uses it.
///
/// Any thread may use it.
package final class OrderRegistry: Sendable {
  /// What all comparisons are counted in.
  package let tally = ComparisonTally()
  private let orders = Mutex<[SortOrder: Entry]>([:])

  private struct Entry {
    weak var order: SharedOrder?
  }

  package init() {}

  /// The order, if it is in use.
  func existing(_ order: SortOrder) -> SharedOrder? { orders.withLock { $0[order]?.order } }

  func shared(_ order: SortOrder) -> SharedOrder {
    orders.withLock { orders in
      if let shared = orders[order]?.order { return shared }
      orders = orders.filter { $0.value.order != nil }
      let new = SharedOrder(order, tally: tally)
      orders[order] = Entry(order: new)
      return new
    }
  }
}
