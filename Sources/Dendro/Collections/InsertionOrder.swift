/// Elements in the order in which they came, each found and removed by its id.
///
/// A removal leaves a gap; gaps are closed once they are more than the elements. Most orders are short:
/// up to eight places are searched one after the other, and only longer orders have a table.
///
/// Finding, appending and removing are O(1), amortized.
package struct InsertionOrder<Element: Identifiable> {
  /// The elements in order, with gaps among them. Holding a copy costs nothing until the order changes;
  /// then it is copied once.
  package private(set) var slots: [Element?] = []
  /// Where each element is; empty while there are few slots.
  private var places: [Element.ID: Int] = [:]
  package private(set) var count = 0
  private let tally: StepTally

  private static var searchedSlotCountMax: Int { 8 }

  /// - Parameter tally: what steps are counted in, those of this order and of its copies.
  package init(tally: StepTally = StepTally()) { self.tally = tally }

  package var isEmpty: Bool { count == 0 }

  package subscript(id: Element.ID) -> Element? { place(of: id).flatMap { slots[$0] } }

  private func place(of id: Element.ID) -> Int? {
    if slots.count > Self.searchedSlotCountMax {
      tally.count += 1
      return places[id]
    }
    return slots.firstIndex {
      tally.count += 1
      return $0.map { $0.id == id } ?? false
    }
  }

  /// Appends an element with an id that is not there yet.
  package mutating func append(_ element: Element) {
    if slots.count == Self.searchedSlotCountMax, count < slots.count { closeGaps() }
    slots.append(element)
    count += 1
    if slots.count == Self.searchedSlotCountMax + 1 {
      makeTable()
    } else if slots.count > Self.searchedSlotCountMax {
      places[element.id] = slots.count - 1
    }
  }

  /// Removes the element with this id, if it is there.
  ///
  /// - Returns: the element, which thereby outlives its removal.
  @discardableResult
  package mutating func remove(_ id: Element.ID) -> Element? {
    guard let place = place(of: id), let element = slots[place] else { return nil }
    slots[place] = nil
    places[id] = nil
    count -= 1
    if count == 0 {
      self = InsertionOrder(tally: tally)
    } else if slots.count > Self.searchedSlotCountMax, count * 2 < slots.count {
      closeGaps()
    }
    return element
  }

  private mutating func closeGaps() {
    tally.count += slots.count
    slots = slots.filter { $0 != nil }
    makeTable()
  }

  private mutating func makeTable() {
    places = [:]
    guard slots.count > Self.searchedSlotCountMax else { return }
    tally.count += slots.count
    places.reserveCapacity(slots.count)
    for (place, element) in slots.enumerated() {
      if let element { places[element.id] = place }
    }
  }
}

/// Counts the slots of listeners that are read or moved, for tests of the cost of listening. Not
/// thread-safe.
package final class StepTally {
  package var count = 0

  package init() {}
}
