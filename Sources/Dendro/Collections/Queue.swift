/// First in, first out; O(1) amortized.
package struct Queue<Element> {
  private var elements: [Element?] = []
  private var head = 0

  package init() {}

  package var count: Int { elements.count - head }
  package var isEmpty: Bool { count == 0 }

  package var first: Element? { head < elements.count ? elements[head] : nil }

  package mutating func append(_ element: Element) { elements.append(element) }

  package mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    // Taken out in place, so that no reference is counted.
    let first = elements[head].take()
    head += 1
    // Moved down once as much is empty as is left, so that each element is moved at most once.
    if head == elements.count {
      elements.removeAll(keepingCapacity: head <= 1024)
      head = 0
    } else if head >= 64, head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return first
  }

  package mutating func removeAll() {
    elements.removeAll(keepingCapacity: true)
    head = 0
  }

  /// Removes all elements and appends them to others, which thereby keep them alive.
  package mutating func removeAll(into others: inout [Element]) {
    for case let element? in elements[head...] { others.append(element) }
    removeAll()
  }
}
