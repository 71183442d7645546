import Synchronization

/// Counts the comparisons that indexes make, for tests of their cost. A look at the heads of a leaf page's
/// positions counts as one.
///
/// Any thread may use it; of comparisons made by two threads at once, some may not be counted.
package final class ComparisonTally: Sendable {
  private let value = Atomic<Int>(0)

  package init() {}

  package var count: Int { value.load(ordering: .relaxed) }

  package func add(_ count: Int = 1) {
    value.store(value.load(ordering: .relaxed) &+ count, ordering: .relaxed)
  }
}
