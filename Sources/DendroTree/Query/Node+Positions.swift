extension SortOrder {
  /// Where the child stands, packed.
  package func packedPosition(of key: Key, _ child: Node) -> PackedPosition {
    PackedPosition(value(of: child), key)
  }
}

extension Node {
  /// Where the child at a key stands in an order; nil if there is none. For an order by a child's path the
  /// child is read in place.
  ///
  /// - Complexity: O(log children).
  package func packedPosition(ofChild key: Key, in order: SortOrder) -> PackedPosition? {
    if case .child(let path) = order {
      return withView { view in
        let child = view.child(key)
        if child.isEmpty { return nil }
        let sorted = path.withStoredBytes { child.view(at: $0) }
        return PackedPosition(SortValue(sorted), key)
      }
    }
    let child = child(key)
    return child.isEmpty ? nil : order.packedPosition(of: key, child)
  }
}

extension Node {
  /// Where each child stands in an order, in the order of keys.
  ///
  /// - Complexity: O(n).
  package func packedPositions(in order: SortOrder) -> [PackedPosition] {
    var positions: [PackedPosition] = []
    positions.reserveCapacity(childCount)
    if case .child(let path) = order {
      withView { view in
        view.forEachChild { key, child in
          let sorted = path.withStoredBytes { child.view(at: $0) }
          positions.append(PackedPosition(SortValue(sorted), key.key))
          return true
        }
      }
    } else {
      forEachChild { positions.append(order.packedPosition(of: $0, $1)) }
    }
    return positions
  }
}

extension Node {
  /// The bytes of the strings by which the children are sorted, of those alone that a position does not store
  /// inline.
  ///
  /// - Complexity: O(n).
  package func longSortByteCount(in order: SortOrder) -> Int {
    var byteCount = 0
    func add(_ value: SortValue) {
      guard case .scalar(.string(let text)) = value, text.utf8.count > 15 else { return }
      byteCount += text.utf8.count
    }
    if case .child(let path) = order {
      withView { view in
        view.forEachChild { _, child in
          add(SortValue(path.withStoredBytes { child.view(at: $0) }))
          return true
        }
      }
    } else {
      forEachChild { add(order.value(of: $1)) }
    }
    return byteCount
  }
}

extension Node {
  /// Calls `body` with the old and the new position of each child that two states do not share, nil if it
  /// is not there, until it returns false. Both may be equal.
  ///
  /// - Returns: whether `body` was called with all of them, and returned true each time.
  /// - Complexity: O(pages that the two states do not share).
  package static func forEachShift(
    from old: Node, to new: Node, in order: SortOrder,
    _ body: (PackedPosition?, PackedPosition?) -> Bool
  ) -> Bool {
    var isComplete = true
    forEachUnshared(old, new) { key, before, after in
      isComplete = body(
        before.isEmpty ? nil : order.packedPosition(of: key, before),
        after.isEmpty ? nil : order.packedPosition(of: key, after))
      return isComplete
    }
    return isComplete
  }
}

extension SortValue {
  fileprivate init(_ view: NodeView) {
    self = view.scalar.map(SortValue.scalar) ?? (view.isEmpty ? .none : .branch)
  }
}
