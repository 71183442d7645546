package import DendroTree
public import Foundation

/// What stood at one location at one moment. It never changes, and stays readable after the database
/// was closed.
///
/// Any thread may use it. Taking one costs nothing; what is asked of it is made when asked.
/// It is also a sequence of its children.
public final class DataSnapshot: Sendable {
  package let node: Node
  private let place: Place

  /// - Parameters:
  ///   - order: that of the query that made the snapshot; snapshots of children have the default order.
  ///   - ranked: the children in this order, if they are known.
  init(
    _ node: Node, at location: DatabaseReference, order: DendroTree.SortOrder = .priority,
    ranked: [OrderedChildren.Element]? = nil
  ) {
    self.node = node
    if case .priority = order, ranked == nil {
      place = .reference(location)
    } else {
      place = .query(location, order, ranked)
    }
  }

  /// A descendant in the default order.
  private init(_ node: Node, _ place: Place) {
    self.node = node
    self.place = place
  }

  /// Where a snapshot stands, and what few snapshots have besides. The reference is made when it is asked for,
  /// since most snapshots of children are only read.
  private enum Place: Sendable {
    case reference(DatabaseReference)
    /// Foundation has a sort order too.
    case query(DatabaseReference, DendroTree.SortOrder, [OrderedChildren.Element]?)
    case child(of: DatabaseReference, Key)
    /// The path is valid.
    case descendant(of: DatabaseReference, Key?, path: String)

    var reference: DatabaseReference {
      switch self {
      case .reference(let reference), .query(let reference, _, _): return reference
      case .child(let parent, let key): return parent.appending(key)
      case .descendant(let ancestor, let key, let path):
        return (key.map { ancestor.appending($0) } ?? ancestor).child(path)
      }
    }
  }

  private var location: DatabaseReference { place.reference }

  fileprivate convenience init(child: OrderedChildren.Element, of parent: DatabaseReference) {
    self.init(child.node, .child(of: parent, child.key))
  }

  // MARK: Place

  /// The last segment of the location; "" at the root.
  public var key: String {
    if case .child(_, let key) = place { return key.string }
    return location.key ?? ""
  }

  /// The location, for reading what is there now and for writing.
  public var ref: DatabaseReference { location }

  // MARK: Content

  /// Whether there is anything here.
  public func exists() -> Bool { !node.isEmpty }

  /// Whether there is nothing here: the contrary of ``exists()``.
  public var isEmpty: Bool { node.isEmpty }

  /// The data: `NSNull` if there is none, `NSNumber` for numbers and booleans, `String`, and
  /// dictionaries and arrays of these. Priorities do not show.
  ///
  /// Children make an array if their keys are 0, 1, 2, … and at least half of the places up to the
  /// last one are taken; what is missing is `NSNull` then. ``valueInExportFormat()`` never guesses
  /// arrays, and the children of the snapshot are always there by key. Keys that differ only in Unicode
  /// normalization meet in a Swift dictionary; as children they are apart.
  ///
  /// - Complexity: O(size of the data), at each call.
  public var value: Any? { node.foundationValue }

  /// The data with its priorities: never arrays, a leaf with a priority as `.value` and `.priority`.
  /// Handed to `setValue(_:)` it makes the same data again.
  public func valueInExportFormat() -> Any? { node.exportValue }

  /// A number or a string; `NSNull` if there is none.
  public var priority: Any? { node.priority?.foundationValue ?? NSNull() }

  /// The integer here, also if it is stored as a double of the same value; else nil.
  public var int: Int? { node.scalar?.int }

  /// The number here; else nil. Integers beyond 2^53 are rounded to the nearest double.
  public var double: Double? { node.scalar?.double }

  /// The string here; else nil.
  public var string: String? { node.scalar?.string }

  /// The boolean here; else nil. Numbers are no booleans.
  public var bool: Bool? { node.scalar?.bool }

  // MARK: Children

  /// How many children there are; 0 for a scalar.
  public var childrenCount: UInt { UInt(node.childCount) }

  /// ``childrenCount`` as Swift counts.
  public var count: Int { node.childCount }

  /// Whether there are children.
  public func hasChildren() -> Bool { node.childCount > 0 }

  /// Whether there is anything at `pathString` below. False for a path that cannot be.
  public func hasChild(_ pathString: String) -> Bool {
    guard !pathString.isEmpty, let descendant = try? node.node(parsing: pathString) else {
      return false
    }
    return !descendant.isEmpty
  }

  /// What is at `pathString` below: a snapshot of nothing if there is nothing. For a path that
  /// cannot be, ``ref`` carries the error.
  ///
  /// - Complexity: O(segments · log children).
  public func childSnapshot(forPath pathString: String) -> DataSnapshot {
    do throws(ValidationError) {
      try Path.checkNotEmpty(pathString)
      let descendant = try node.node(parsing: pathString)
      switch place {
      case .reference(let reference), .query(let reference, _, _):
        return DataSnapshot(descendant, .descendant(of: reference, nil, path: pathString))
      case .child(let parent, let key):
        return DataSnapshot(descendant, .descendant(of: parent, key, path: pathString))
      case .descendant:
        return DataSnapshot(descendant, .descendant(of: location, nil, path: pathString))
      }
    } catch {
      return DataSnapshot(.empty, at: location.failing(DatabaseError(error)))
    }
  }

  /// ``childSnapshot(forPath:)``.
  public subscript(pathString: String) -> DataSnapshot { childSnapshot(forPath: pathString) }

  /// The children as `DataSnapshot`s, in the order of the query that made the snapshot: by priority and
  /// then by key unless it had another.
  public var children: NSEnumerator { ChildEnumerator(makeIterator()) }
}

extension DataSnapshot: Sequence {
  /// Iterates over the children in the order of the query that made the snapshot.
  public struct Iterator: IteratorProtocol {
    private var children: OrderedChildren.Iterator
    private let location: DatabaseReference

    fileprivate init(_ children: OrderedChildren, _ location: DatabaseReference) {
      self.children = children.makeIterator()
      self.location = location
    }

    /// The next child; nil after the last.
    public mutating func next() -> DataSnapshot? {
      guard let child = children.next() else { return nil }
      return DataSnapshot(child: child, of: location)
    }
  }

  /// Iterates over the children in the order of the query that made the snapshot, by default by priority
  /// and then by key. The children of a child are always in the default order.
  ///
  /// - Complexity: O(1) a child by key, in the default order if no child has a priority, if the query
  ///   had a kept order, and if a listener to at most 1,000 children of a query with bounds or a limit
  ///   got them; otherwise they are sorted first, O(n log n), each time that an iterator is made.
  public func makeIterator() -> Iterator {
    if case .query(let location, let order, let ranked) = place {
      return Iterator(node.children(in: order, ranked: ranked), location)
    }
    return Iterator(node.children(in: .priority), location)
  }

  /// ``childrenCount``.
  public var underestimatedCount: Int { node.childCount }
}

extension DataSnapshot: Equatable {
  /// Whether both show the same data with the same priorities in the same order, at the same path. The database does not
  /// matter, so that a copy can be compared with its original.
  ///
  /// - Complexity: O(size of the data); O(1) for what two snapshots of one database share.
  public static func == (a: DataSnapshot, b: DataSnapshot) -> Bool {
    a === b
      || (a.location.location == b.location.location && a.order == b.order && a.node == b.node)
  }

  private var order: DendroTree.SortOrder {
    if case .query(_, let order, _) = place { return order }
    return .priority
  }
}

extension DataSnapshot: CustomStringConvertible {
  /// Key and value, for people.
  public var description: String { "Snap (\(key)) \(node.exportValue)" }
}

/// `NSEnumerator` over snapshots.
private final class ChildEnumerator: NSEnumerator {
  private var children: DataSnapshot.Iterator

  init(_ children: DataSnapshot.Iterator) { self.children = children }

  override func nextObject() -> Any? { children.next() }
}
