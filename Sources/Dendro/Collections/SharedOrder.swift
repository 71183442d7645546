package import DendroTree
import Synchronization

/// The children of one path in one sort order, shared by all its listeners, iterators and repeated queries,
/// each of which may be at another state. It keeps the order of the state that was requested last, and what
/// the last queries showed of it.
///
/// Any thread may use it.
package final class SharedOrder: Sendable {
  let order: SortOrder
  private let tally: ComparisonTally
  private let kept = Mutex<KeptOrder?>(nil)
  private let allocated = Atomic<Int>(0)

  /// What long strings took in the index when it was used last.
  var allocatedByteCount: Int { allocated.load(ordering: .relaxed) }

  init(_ order: SortOrder, tally: ComparisonTally) {
    self.order = order
    self.tally = tally
  }

  /// The children of a state, in order.
  ///
  /// - Parameter step: a state, and how each child that changed since moved: used if it is the state
  ///   that is kept.
  /// - Complexity: O(1) for the state that is kept; O(children that differ · log n) for another one;
  ///   O(n log n) for the first.
  func siblings(of node: Node, after step: (old: Node, shifts: [Shift])? = nil) -> SiblingOrder {
    withOrder(of: node, after: step) { $0.siblings }
  }

  /// What a query in this order shows of a node, and the shown children in this order; nil if it shows so
  /// many children that looking at all of them is faster.
  ///
  /// - Complexity: O(children that changed since the last call · log n), and O(shown · log n) if any of
  ///   them concerns what the query shows.
  func shown(of node: Node, by parameters: QueryParameters) -> ShownChildren? {
    withOrder(of: node) { $0.shown(by: parameters) }
  }

  /// `shown(of:by:)` if that is quick: the order is kept, no other thread uses it, and few children differ
  /// from the state that is kept. Nil otherwise.
  func quicklyShown(of node: Node, by parameters: QueryParameters) -> ShownChildren? {
    let found = kept.withLockIfAvailable { kept -> ShownChildren? in
      guard var order = kept.take() else { return nil }
      defer { keep(order, in: &kept) }
      guard order.advance(to: node, atMost: Self.quickChangeMax) else { return nil }
      return order.quicklyShown(by: parameters)
    }
    return found ?? nil
  }

  /// Changed children that are followed on the caller's thread.
  private static var quickChangeMax: Int { 256 }

  private func withOrder<R>(
    of node: Node, after step: (old: Node, shifts: [Shift])? = nil, _ body: (inout KeptOrder) -> R
  ) -> R {
    kept.withLock { kept in
      // Taken out, so that nothing is copied when it changes.
      var order = kept.take() ?? KeptOrder(SiblingOrder(order, of: node, tally: tally))
      if let step, step.old.isIdentical(to: order.siblings.node) {
        order.advance(to: node, step.shifts)
      } else {
        order.advance(to: node)
      }
      let result = body(&order)
      keep(order, in: &kept)
      return result
    }
  }

  private func keep(_ order: KeptOrder, in kept: inout KeptOrder?) {
    allocated.store(order.siblings.allocatedByteCount, ordering: .relaxed)
    kept = order
  }

  var hasIndex: Bool { kept.withLock { $0?.siblings.hasIndex ?? false } }
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
