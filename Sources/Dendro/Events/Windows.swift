import DendroTree

/// The windows of a generator, found by their queries' parameters.
struct Windows {
  /// In no order.
  private var windows: [Window] = []
  /// Where each window is; empty while there are few.
  private var places: [QueryParameters: Int] = [:]

  /// So many are searched one after the other, since hashing parameters costs more.
  private static var searchedCountMax: Int { 4 }

  subscript(parameters: QueryParameters) -> Window? { place(of: parameters).map { windows[$0] } }

  private func place(of parameters: QueryParameters) -> Int? {
    windows.count > Self.searchedCountMax
      ? places[parameters] : windows.firstIndex { $0.parameters == parameters }
  }

  /// Adds a window for parameters that have none.
  mutating func insert(_ window: Window) {
    windows.append(window)
    if windows.count == Self.searchedCountMax + 1 {
      for (place, window) in windows.enumerated() { places[window.parameters] = place }
    } else if windows.count > Self.searchedCountMax {
      places[window.parameters] = windows.count - 1
    }
  }

  mutating func remove(_ parameters: QueryParameters) {
    guard let place = place(of: parameters) else { return }
    windows.swapAt(place, windows.count - 1)
    windows.removeLast()
    if windows.count <= Self.searchedCountMax { return places = [:] }
    places[parameters] = nil
    if place < windows.count { places[windows[place].parameters] = place }
  }

  /// The children that a window shows; none if there is no window.
  mutating func content(
    of parameters: QueryParameters, over siblings: SiblingOrder
  ) -> ShownChildren {
    place(of: parameters).map { windows[$0].content(over: siblings) } ?? ShownChildren(node: .empty)
  }

  mutating func updateAll(_ body: (inout Window) -> Void) {
    for place in windows.indices { body(&windows[place]) }
  }
}
