package import DendroTree

/// What a client knows of what one listen shows: what its server has said, and with the pending writes.
package struct ListenedView: Sendable {
  package let parameters: QueryParameters
  private(set) var server: Knowledge
  /// With the pending writes; of a query's location more than the query shows, where more is known.
  package internal(set) var visible: Knowledge
  /// Whether the server has answered a listen of this view, and not only what is kept from earlier ones is known.
  private var isAnswered = false
  /// Whether the operation under way has replaced all that is shown.
  var wasReplaced = false

  /// - Parameters:
  ///   - server: what is known already.
  ///   - writes: those that are pending there.
  init(_ parameters: QueryParameters, _ server: Knowledge, _ writes: WriteLayer) {
    self.parameters = parameters
    self.server = server
    visible = Knowledge(isWindow: !parameters.showsAll)
    if server.isComplete {
      show(writes.applied(to: server.node))
    } else {
      show(writes.whole ?? writes.knownChildren(over: server.node))
    }
    visible.isComplete = server.isComplete || writes.whole != nil
    settle(from: .empty, writes, nil)
  }

  /// - Parameters:
  ///   - writes: those that are pending here, after the operation.
  ///   - whole: what the server has here, if another listen knows all of it.
  ///   - isOwn: whether the server has said it of this query alone.
  mutating func apply(
    _ operation: SyncOperation, _ writes: WriteLayer, whole: Node?, isOwn: Bool
  ) {
    let place = operation.place
    let before = visible.node
    wasReplaced = false
    defer { settle(from: before, writes, whole) }
    switch operation.kind {
    case .write(let node): write(node, at: place, writes, whole)
    case .writes(let entries):
      for entry in entries { write(entry.node, at: entry.place.below(place.path), writes, whole) }
    case .news(let node):
      learn(node, at: place, isWindow: isOwn || server.isWindow && !place.isRoot, writes)
    case .newsOfEntries(let entries):
      learn(
        entries.map { PendingWrites.Entry($0.place.below(place.path), $0.node) },
        isWindow: isOwn || server.isWindow, writes)
    case .accepted(let places, let isTold):
      if isTold { takeBackUntold(places, at: place, writes) }
      accept(places, at: place, writes)
    case .refused: takeBack(place, writes)
    case .listened(let node, let isWindow):
      if place.isRoot {
        isAnswered = true
        server.isComplete = true
        if let node {
          // Also if the server had nothing new to say, a listen of all shows more than a window.
          server.isWindow = isWindow || isOwn && server.isWindow
          server.node = server.isWindow ? node.filtered(by: parameters) : node
        }
      }
      showNews(at: place, writes)
    }
  }

  // MARK: Writes

  private mutating func write(
    _ node: Node, at place: DataPlace, _ writes: WriteLayer, _ whole: Node?
  ) {
    guard let key = place.path.first else {
      if !place.isPriority {
        show(node)
        visible.isComplete = true
      } else if parameters.showsAll {
        visible.node.put(node, at: place)
      }
      return
    }
    let rest = place.droppingFirst()
    var child = Node.empty
    if rest.isRoot {
      child = node
    } else if let known = visible.isComplete(at: key)
      ? visible.node.child(key)
      : Self.child(key, of: whole.map { Knowledge(node: $0, isComplete: true) } ?? server, writes)
    {
      child = known
      child.put(node, at: rest)
    }
    show(child, at: key)
  }

  /// The child at a key with the pending writes; nil if it is not wholly known.
  private static func child(_ key: Key, of server: Knowledge, _ writes: WriteLayer) -> Node? {
    let layer = writes.below(key)
    if let whole = layer.whole { return whole }
    return server.isComplete(at: key) ? layer.applied(to: server.node.child(key)) : nil
  }

  // MARK: What the server says

  private mutating func learn(
    _ node: Node, at place: DataPlace, isWindow: Bool, _ writes: WriteLayer
  ) {
    let isWindow = isWindow && !parameters.showsAll
    if place.isRoot {
      server.node = isWindow ? node.filtered(by: parameters) : node
      server.isComplete = true
    } else if isWindow, !server.isWindow {
      server.node.put(node, at: place)
      server.node = server.node.filtered(by: parameters)
    } else if let key = place.path.first {
      let rest = place.droppingFirst()
      // What lies deeper is for another listen.
      if !rest.isRoot, !server.isComplete(at: key) { return }
      var child = server.node.child(key)
      child.put(node, at: rest)
      if isWindow {
        parameters.put(child, at: key, in: &server.node)
      } else {
        server.node.put(child, at: key)
      }
    } else if !isWindow {
      server.node.put(node, at: place)
    }
    server.isWindow = isWindow
    showNews(at: place, writes)
  }

  private mutating func learn(
    _ entries: [PendingWrites.Entry], isWindow: Bool, _ writes: WriteLayer
  ) {
    // Meant for a listen before this one, whose whole value is on its way.
    if server.node.isEmpty, !server.isComplete { return }
    let before = server
    var children: [Key: [PendingWrites.Entry]] = [:]
    for entry in entries {
      if let key = entry.place.path.first {
        children[key, default: []].append(
          PendingWrites.Entry(entry.place.droppingFirst(), entry.node))
      } else {
        learn(entry.node, at: entry.place, isWindow: isWindow, writes)
      }
    }
    // What leaves a window makes room for what comes.
    for isThere in [true, false] {
      for (key, entries) in children.sorted(by: { $0.key < $1.key })
      where before.node.has(key) == isThere {
        if !isThere, !before.isComplete(at: key), !entries.contains(where: \.place.isRoot) {
          continue
        }
        var child = before.node.child(key)
        for entry in entries { child.put(entry.node, at: entry.place) }
        learn(child, at: DataPlace(Path.root.appending(key)), isWindow: isWindow, writes)
      }
    }
  }

  /// Shows what the server has at a place, unless writes cover it.
  private mutating func showNews(at place: DataPlace, _ writes: WriteLayer) {
    if writes.covering(place) != nil { return }
    let place = leaf(above: place) ?? place
    guard let key = place.path.first else {
      if !place.isPriority {
        show(
          server.isWindow
            ? writes.knownChildren(over: server.node) : writes.applied(to: server.node))
        visible.isComplete = true
      } else if parameters.showsAll {
        visible.node.put(server.node.node(at: place), at: place)
      }
      return
    }
    guard visible.isComplete(at: key) else {
      if let child = Self.child(key, of: server, writes) { show(child, at: key) }
      return
    }
    var child = visible.node.child(key)
    child.put(
      writes.below(place).applied(to: server.node.node(at: place)), at: place.droppingFirst())
    show(child, at: key)
  }

  /// The location of a leaf that the server has above a place: a write below hid it, and without that write it shows again. Nil
  /// if there is none.
  private func leaf(above place: DataPlace) -> DataPlace? {
    var node = server.node
    var path = Path.root
    for key in place.path.keys {
      // A query shows no children of a leaf at its own location.
      if node.isLeaf, !(server.isWindow && path.isRoot) { return DataPlace(path) }
      node = node.child(key)
      path = path.appending(key)
    }
    return nil
  }

  // MARK: Answers

  private mutating func accept(_ places: [DataPlace]?, at place: DataPlace, _ writes: WriteLayer) {
    if writes.covering(place) != nil { return }
    // What the server has there shows from now on.
    if let places {
      let entries = places.map { $0.below(place.path) }.filter { server.isComplete(at: $0) }
        .map { PendingWrites.Entry($0, server.node.node(at: $0)) }
      return learn(entries, isWindow: server.isWindow, writes)
    }
    if place.isRoot ? server.isComplete : server.isComplete(at: place) {
      learn(server.node.node(at: place), at: place, isWindow: server.isWindow, writes)
    } else if place.isRoot {
      let entries = server.node.children.map {
        PendingWrites.Entry(DataPlace(Path.root.appending($0.key)), $0.node)
      }
      learn(entries, isWindow: server.isWindow, writes)
    }
  }

  /// Takes back the children that a write shows in a query, and of which the server has not told: they are not what the query
  /// has there, or not any more. The official SDK shows them on.
  private mutating func takeBackUntold(
    _ places: [DataPlace]?, at place: DataPlace, _ writes: WriteLayer
  ) {
    guard isAnswered, server.isWindow, server.isComplete else { return }
    for place in places?.map({ $0.below(place.path) }) ?? [place] {
      guard let key = place.path.first, !server.node.has(key) else { continue }
      if writes.covering(place) == nil { takeBack(place, writes) }
    }
  }

  private mutating func takeBack(_ place: DataPlace, _ writes: WriteLayer) {
    if let key = place.path.first {
      show(Self.child(key, of: server, writes) ?? .empty, at: key)
      if visible.node.isEmpty, server.isComplete {
        let node = writes.applied(to: server.node)
        if node.isLeaf { show(node) }
      }
    } else {
      show(
        server.isComplete
          ? writes.applied(to: server.node)
          : writes.whole ?? writes.knownChildren(over: server.node))
    }
    visible.isComplete = server.isComplete || writes.whole != nil
  }
}
