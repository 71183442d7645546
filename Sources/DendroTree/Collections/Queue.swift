/// First in, first out; O(1) amortized.
public struct Queue<Element> {
  @usableFromInline var elements: [Element?] = []
  @usableFromInline var head = 0

  /// Makes an empty queue.
  @inlinable public init() {}

  /// The number of elements.
  @inlinable public var count: Int { elements.count - head }
  /// Whether there is no element.
  @inlinable public var isEmpty: Bool { count == 0 }

  /// The element that comes out next.
  @inlinable public var first: Element? { head < elements.count ? elements[head] : nil }

  /// Adds an element behind the others.
  @inlinable public mutating func append(_ element: Element) { elements.append(element) }

  /// Takes out the oldest element; nil if there is none.
  @inlinable public mutating func popFirst() -> Element? {
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

  /// Removes all elements, and keeps the memory.
  @inlinable public mutating func removeAll() {
    elements.removeAll(keepingCapacity: true)
    head = 0
  }

  /// Removes all elements and appends them to others, which thereby keep them alive.
  @inlinable public mutating func removeAll(into others: inout [Element]) {
    for case let element? in elements[head...] { others.append(element) }
    removeAll()
  }
}

extension Queue: Sendable where Element: Sendable {}
