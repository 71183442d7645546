/// The least element first; O(log count).
struct Heap<Element> {
  private var elements: [Element] = []
  private let isLess: (Element, Element) -> Bool

  init(by isLess: @escaping (Element, Element) -> Bool) { self.isLess = isLess }

  var isEmpty: Bool { elements.isEmpty }

  mutating func insert(_ element: Element) {
    elements.append(element)
    var index = elements.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard isLess(elements[index], elements[parent]) else { return }
      elements.swapAt(index, parent)
      index = parent
    }
  }

  mutating func popFirst() -> Element? {
    guard !elements.isEmpty else { return nil }
    elements.swapAt(0, elements.count - 1)
    let first = elements.removeLast()
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < elements.count {
        if isLess(elements[child], elements[least]) { least = child }
      }
      if least == index { return first }
      elements.swapAt(index, least)
      index = least
    }
  }

  mutating func removeAll() { elements.removeAll() }

  /// O(count), and O(count log count) if any is removed.
  mutating func removeAll(where isRemoved: (Element) -> Bool) {
    guard elements.contains(where: isRemoved) else { return }
    let left = elements.filter { !isRemoved($0) }
    elements = []
    for element in left { insert(element) }
  }
}
