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

extension Queue: Sendable where Element: Sendable {}

/// Work that is done in order by drains, of which there is one at a time. The lock of its owner guards it.
package struct WorkQueue<Work> {
  private var waiting = Queue<Work>()
  /// Whether there is a drain, which does what waits.
  package private(set) var hasDrain = false

  package init() {}

  package var count: Int { waiting.count }

  package mutating func append(_ work: Work) { waiting.append(work) }

  /// Whether there is work and no drain.
  package var needsDrain: Bool { !hasDrain && !waiting.isEmpty }

  /// Notes that there is a drain if one is needed. The caller dispatches it.
  package mutating func beginDrain() -> Bool {
    guard needsDrain else { return false }
    hasDrain = true
    return true
  }

  /// Takes the next pieces of work. If none waits, the drain has ended.
  ///
  /// - Parameters:
  ///   - limit: the most pieces that are taken.
  ///   - take: gets a piece; returns whether one behind it may be taken together with it.
  /// - Returns: the number of pieces.
  package mutating func take(atMost limit: Int = .max, _ take: (consuming Work) -> Bool) -> Int {
    var count = 0
    while count < limit, let work = waiting.popFirst() {
      count += 1
      guard take(work) else { break }
    }
    if count == 0 { hasDrain = false }
    return count
  }

  /// Replaces what waits.
  package mutating func replace(_ body: (_ waiting: [Work]) -> [Work]) {
    var old: [Work] = []
    waiting.removeAll(into: &old)
    for work in body(old) { waiting.append(work) }
  }
}
