import DendroTree

extension Database.Value {
  /// Children by key, in the order of keys: integers by value, then all others by UTF-16 code units.
  ///
  /// A child is never nothing. Keys are literal: those that differ in Unicode normalization only are
  /// different ones. Keys that the tree forbids come last here, and are refused when the value is set.
  public struct Children: Sendable {
    private var entries: [Entry]

    private struct Entry: Sendable {
      let order: Order
      let name: String
      var value: Database.Value
    }

    /// The place of a key among others.
    private enum Order: Comparable, Sendable {
      case key(DendroTree.Key)
      case forbidden(Scalar)

      init(_ name: String) {
        do throws(ValidationError) {
          self = .key(try DendroTree.Key(name))
        } catch {
          self = .forbidden(.string(name))
        }
      }
    }

    /// Makes children of pairs in any order; of several at one key the last holds.
    public init(_ pairs: some Sequence<(String, Database.Value)>) {
      let sorted = pairs.map { Entry(order: Order($0), name: $0, value: $1) }
        .enumerated()
        .sorted { ($0.element.order, $0.offset) < ($1.element.order, $1.offset) }
      entries = []
      entries.reserveCapacity(sorted.count)
      for (_, entry) in sorted {
        if entries.last?.order == entry.order { entries.removeLast() }
        entries.append(entry)
      }
      entries.removeAll { $0.value.isNull }
    }

    init(of node: Node) {
      entries = []
      entries.reserveCapacity(node.childCount)
      node.forEachChild { key, child in
        entries.append(Entry(order: .key(key), name: key.string, value: Database.Value(child)))
      }
    }

    /// The child at a key; `.null` if there is none, and to remove it.
    ///
    /// - Complexity: O(log children); O(children) to set.
    public subscript(key: String) -> Database.Value {
      get {
        let (place, found) = place(Order(key))
        return found ? entries[place].value : .null
      }
      set {
        let order = Order(key)
        let (place, found) = place(order)
        switch (found, newValue.isNull) {
        case (true, true): entries.remove(at: place)
        case (true, false): entries[place].value = newValue
        case (false, false):
          entries.insert(Entry(order: order, name: key, value: newValue), at: place)
        case (false, true): break
        }
      }
    }

    /// The first place whose key is not below `order`, and whether it is that one.
    private func place(_ order: Order) -> (Int, Bool) {
      var low = 0
      var high = entries.count
      while low < high {
        let middle = (low + high) / 2
        if entries[middle].order < order { low = middle + 1 } else { high = middle }
      }
      return (low, low < entries.count && entries[low].order == order)
    }
  }
}

extension Database.Value.Children: RandomAccessCollection {
  /// A key and what is there.
  public typealias Element = (key: String, value: Database.Value)

  /// 0.
  public var startIndex: Int { 0 }

  /// The number of children.
  public var endIndex: Int { entries.count }

  /// The child at a place in the order of keys, which is not its key.
  public subscript(position: Int) -> Element { (entries[position].name, entries[position].value) }

  /// The keys in order.
  public var keys: [String] { entries.map(\.name) }

  /// The values in the order of their keys.
  public var values: [Database.Value] { entries.map(\.value) }
}

extension Database.Value.Children: ExpressibleByDictionaryLiteral {
  /// Of several at one key the last holds.
  public init(dictionaryLiteral elements: (String, Database.Value)...) { self.init(elements) }
}

// Without recursion: values may be built deeper than the stack is, though none such can be stored.
extension Database.Value.Children: Hashable {
  /// Whether both have the same data at the same keys.
  public static func == (a: Self, b: Self) -> Bool {
    var pairs = [(a, b)]
    while let (a, b) = pairs.popLast() {
      guard a.count == b.count else { return false }
      for (x, y) in zip(a.entries, b.entries) {
        guard x.order == y.order else { return false }
        switch (x.value, y.value) {
        case (.children(let x), .children(let y)): pairs.append((x, y))
        case (.children, _), (_, .children): return false
        default: if x.value.scalar != y.value.scalar { return false }
        }
      }
    }
    return true
  }

  /// Hashes the keys and values.
  public func hash(into hasher: inout Hasher) {
    var all = [self]
    while let children = all.popLast() {
      hasher.combine(children.count)
      for entry in children.entries {
        hasher.combine(Scalar.string(entry.name))
        if case .children(let children) = entry.value {
          all.append(children)
        } else {
          hasher.combine(entry.value.scalar)
        }
      }
    }
  }
}
