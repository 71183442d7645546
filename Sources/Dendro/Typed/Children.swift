import DendroPlatform

/// A child of a location: its key, its priority, and its value as a type of yours.
///
/// It is `Identifiable` by its key, as lists of user interfaces want it.
public struct Child<Value> {
  /// The last segment of its location.
  public let key: String
  /// A number or a string; `.null` if it has none.
  public let priority: Database.Value
  /// The data at the child.
  public var value: Value

  /// Makes one.
  public init(key: String, priority: Database.Value = .null, value: Value) {
    (self.key, self.priority, self.value) = (key, priority, value)
  }
}

extension Child: Identifiable {
  /// The key.
  public var id: String { key }
}

extension Child: Sendable where Value: Sendable {}

extension Child: Equatable where Value: Equatable {
  /// Whether key, priority and value are the same. Keys that differ in Unicode normalization only are different ones.
  public static func == (a: Self, b: Self) -> Bool {
    a.key.utf8.elementsEqual(b.key.utf8) && a.priority == b.priority && a.value == b.value
  }
}

extension Child: Hashable where Value: Hashable {
  /// Hashes key and value.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(key)
    hasher.combine(value)
  }
}

/// The children of a location as values of one type, in the order of the query that read them, and by key.
///
/// ```swift
/// let messages = try await room.child("messages").queryLimited(toLast: 50)
///   .getData(as: Children<Message>.self)
/// for message in messages { print(message.key, message.value.text) }
/// ```
///
/// A child is never nothing. What was read stays as it is when the database changes.
public struct Children<Value> {
  private let all: [Child<Value>]
  /// The positions in the order of the keys' literal text.
  private let order: [Int]

  /// Makes children in this order. Of several with the same key, look-up by key finds the last.
  public init(_ children: some Sequence<Child<Value>>) {
    all = Array(children)
    let keys = all.map(\.key)
    // Mostly they are in order already.
    let isSorted = zip(keys, keys.dropFirst()).allSatisfy { Self.isBefore($0, $1) }
    order =
      isSorted
      ? Array(all.indices)
      : all.indices.sorted { a, b in
        keys[a].utf8.elementsEqual(keys[b].utf8) ? a < b : Self.isBefore(keys[a], keys[b])
      }
  }

  /// As bytes: keys that differ in Unicode normalization only are different ones.
  private static func isBefore(_ a: String, _ b: String) -> Bool {
    let result = a.utf8.withContiguousStorageIfAvailable { a in
      b.utf8.withContiguousStorageIfAvailable { b in
        guard let start = a.baseAddress, let other = b.baseAddress else { return a.count < b.count }
        let order = memcmp(start, other, Swift.min(a.count, b.count))
        return order != 0 ? order < 0 : a.count < b.count
      }
    }
    return (result ?? nil) ?? a.utf8.lexicographicallyPrecedes(b.utf8)
  }

  /// The value at a key; nil if there is none.
  ///
  /// - Complexity: O(log children).
  public subscript(key key: String) -> Value? { index(of: key).map { all[$0].value } }

  /// The position of a key; nil if there is none.
  ///
  /// - Complexity: O(log children).
  public func index(of key: String) -> Int? {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = low + (high - low) / 2
      if Self.isBefore(key, all[order[middle]].key) { high = middle } else { low = middle + 1 }
    }
    guard low > 0, all[order[low - 1]].key.utf8.elementsEqual(key.utf8) else { return nil }
    return order[low - 1]
  }

  /// The keys in order.
  public var keys: [String] { all.map(\.key) }

  /// The values in the order of the children.
  public var values: [Value] { all.map(\.value) }
}

extension Children: RandomAccessCollection {
  /// 0.
  public var startIndex: Int { 0 }

  /// The number of children.
  public var endIndex: Int { all.count }

  /// The child at a position in the order, which is not its key.
  public subscript(position: Int) -> Child<Value> { all[position] }
}

extension Children: Sendable where Value: Sendable {}

extension Children: Equatable where Value: Equatable {
  /// Whether both have the same children in the same order.
  public static func == (a: Self, b: Self) -> Bool { a.all == b.all }
}

extension Children: Hashable where Value: Hashable {
  /// Hashes the children in their order.
  public func hash(into hasher: inout Hasher) { hasher.combine(all) }
}
