package import DendroTree

/// The writes of a client that its server has not answered, in their order, and what they make of the data together.
package struct PendingWrites: Sendable {
  /// One write.
  package struct Write: Sendable {
    /// Above all of its places.
    package let path: Path
    /// What its places get, relative to the path. Those of a set are the path itself, or its priority.
    package let entries: [Entry]
    /// Whether it is an update, and no set.
    package let isUpdate: Bool
    /// Whether listeners see it. One that they do not see takes part in the order alone.
    package let isVisible: Bool

    /// What is set, or the location of which parts are updated.
    package var place: DataPlace { isUpdate ? DataPlace(path) : entries[0].place.below(path) }

    /// The same as a write to the data.
    var write: DendroTree.Write {
      if isUpdate {
        return .update(
          path, entries.map { DendroTree.Write.Entry(path: $0.place.path, action: $0.action) })
      }
      switch entries[0].action {
      case .setPriority(let priority): return .setPriority(path, priority)
      case .set(let node): return .set(path, node)
      case .remove, .increment: return .remove(path)
      }
    }

    /// - Parameter place: what is set.
    package init(setting place: DataPlace, _ node: Node, isVisible: Bool = true) {
      path = place.path
      entries = [Entry(DataPlace(.root, isPriority: place.isPriority), node)]
      isUpdate = false
      self.isVisible = isVisible
    }

    /// - Parameter entries: none at or below another one.
    package init(updating path: Path, _ entries: [Entry]) {
      self.path = path
      self.entries = entries
      isUpdate = true
      isVisible = true
    }
  }

  /// What one place gets.
  package struct Entry: Sendable {
    package let place: DataPlace
    package let node: Node

    package init(_ place: DataPlace, _ node: Node) {
      self.place = place
      self.node = node
    }

    fileprivate var action: DendroTree.Write.Entry.Action {
      if place.isPriority { return .setPriority(node.scalar) }
      return node.isEmpty ? .remove : .set(node)
    }
  }

  package private(set) var writes: [Int: Write] = [:]
  /// What the visible ones make of the data.
  private(set) var layer = WriteLayer()
  /// The same by places, from which the layer is made anew where a write is taken out.
  private var placed = PlacedWrites()
  /// The numbers of those that listeners do not see.
  private var hidden: Set<Int> = []

  package init() {}

  package var isEmpty: Bool { writes.isEmpty }

  /// Adds a write behind those before it.
  ///
  /// - Parameter number: above those of the writes before it.
  /// - Complexity: O(depth · log children) for each entry.
  mutating func append(_ write: Write, number: Int) {
    writes[number] = write
    guard write.isVisible else {
      hidden.insert(number)
      return
    }
    for entry in write.entries {
      let place = entry.place.below(write.path)
      layer.put(entry.node, at: place)
      placed.append(entry.node, at: place, number)
    }
  }

  /// Takes a write out.
  ///
  /// - Returns: the write; nil if a later one covers its place, so that nothing of it was visible.
  /// - Complexity: O(depth) for each entry, and that of the writes at it and below.
  mutating func remove(number: Int) -> Write? {
    guard let write = writes.removeValue(forKey: number) else { return nil }
    guard write.isVisible else {
      hidden.remove(number)
      return nil
    }
    var isCovered = false
    for entry in write.entries {
      let place = entry.place.below(write.path)
      let rest = placed.remove(number, at: place)
      isCovered = rest.isCovered
      if rest.isCovered, !rest.hasEarlierNode { continue }
      if rest.isNothing { layer.replace(place.path, by: WriteLayer()) } else { rebuild(place) }
    }
    if write.isUpdate { isCovered = placed.isCovered(write.place, after: number) }
    return isCovered ? nil : write
  }

  /// What is at a location with the writes, also those that listeners do not see.
  ///
  /// - Parameters:
  ///   - server: what the server has there; nil if not all of it is known.
  ///   - numbers: of writes that do not count.
  /// - Returns: nil if not all of it is known.
  /// - Complexity: O(places that are written there); O(n log n) for the writes above and below if some of them do not count
  ///   or are not seen.
  func node(at path: Path, over server: Node?, without numbers: Set<Int>) -> Node? {
    var layer = layer
    if !numbers.isEmpty || !hidden.isEmpty {
      layer = WriteLayer()
      for (number, entry) in entries(relatedTo: path) where !numbers.contains(number) {
        layer.put(entry.node, at: entry.place)
      }
    }
    let here = layer.below(path)
    return here.whole ?? server.map { here.applied(to: $0) }
  }

  /// What is written to a location, above it and below, by all writes in their order.
  private func entries(relatedTo path: Path) -> [(number: Int, entry: Entry)] {
    var found = placed.entries(relatedTo: path)
    for number in hidden {
      for entry in writes[number]?.entries ?? [] {
        let place = entry.place.below(writes[number]?.path ?? .root)
        if place.path.isPrefix(of: path) || path.isPrefix(of: place.path) {
          found.append((number, Entry(place, entry.node)))
        }
      }
    }
    return found.sorted { $0.number < $1.number }
  }

  /// Makes anew what the writes make of a place and of what is below.
  private mutating func rebuild(_ place: DataPlace) {
    // An earlier write that covers the place is answered after this one only if the client gives up the last ones first.
    // What it covers depends on the order of all that came later.
    let depth = placed.depthOfFirst(on: place.path)
    if place.isPriority, depth == nil {
      let priority = placed.last(at: place.path).priority
      return layer.replacePriority(at: place.path, by: priority)
    }
    let path = depth.map { place.path.prefix($0) } ?? place.path
    let base = placed.last(at: path).node
    var region = base.map { WriteLayer(whole: $0.node) } ?? WriteLayer()
    for entry in placed.entries(below: path, after: base?.number) {
      region.put(entry.node, at: entry.place)
    }
    layer.replace(path, by: region)
  }
}
