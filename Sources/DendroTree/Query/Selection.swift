/// The first or the last few of the children that it is offered: a heap with the worst on top.
struct Selection {
  struct Entry {
    let position: SortPosition
    let node: Node
  }

  private let limit: Int
  private let takesLast: Bool
  /// Each entry is worse than the two below it, at twice its index plus 1 and 2.
  private var heap: [Entry] = []

  /// - Parameter limit: at least 1.
  init(limit: Int, takesLast: Bool) {
    self.limit = limit
    self.takesLast = takesLast
  }

  var isFull: Bool { heap.count == limit }

  /// What the next better one pushes out.
  var worstValue: SortValue? { heap.first?.position.value }

  /// - Complexity: O(log limit); O(1) for one that is worse than all.
  mutating func offer(_ position: SortPosition, _ node: Node) {
    if heap.count < limit {
      heap.append(Entry(position: position, node: node))
      rise()
    } else if isWorse(heap[0].position, position) {
      heap[0] = Entry(position: position, node: node)
      sink()
    }
  }

  /// What was selected, in the order of keys.
  consuming func takeByKey() -> [Entry] {
    heap.sort { $0.position.key < $1.position.key }
    return heap
  }

  private func isWorse(_ a: SortPosition, _ b: SortPosition) -> Bool { takesLast ? a < b : b < a }

  /// Puts the last entry in its place.
  private mutating func rise() {
    var index = heap.count - 1
    while index > 0 {
      let above = (index - 1) / 2
      guard isWorse(heap[index].position, heap[above].position) else { return }
      heap.swapAt(index, above)
      index = above
    }
  }

  /// Puts the first entry in its place.
  private mutating func sink() {
    var index = 0
    while true {
      var worst = index
      for below in [2 * index + 1, 2 * index + 2] where below < heap.count {
        if isWorse(heap[below].position, heap[worst].position) { worst = below }
      }
      guard worst != index else { return }
      heap.swapAt(index, worst)
      index = worst
    }
  }
}
