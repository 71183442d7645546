/// The members of a JSON object.
///
/// Names differ if their code points do: a dictionary of strings would take "é" and "é", one scalar and two, for
/// the same name.
public struct JSONObject: Hashable, Sendable {
  /// In the order of their UTF-8; each name once.
  private let members: [Member]

  private struct Member: Hashable, Sendable {
    let name: [UInt8]
    let value: JSONValue
  }

  /// Makes an object. If a name occurs twice, its last value counts.
  ///
  /// - Complexity: O(n · log n).
  public init(_ members: [(String, JSONValue)]) {
    var last: [[UInt8]: JSONValue] = [:]
    for (name, value) in members { last[Array(name.utf8)] = value }
    self.members = last.map { Member(name: $0.key, value: $0.value) }
      .sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// The number of members.
  public var count: Int { members.count }

  /// The names in the order of their UTF-8.
  public var names: [String] { members.map { String(decoding: $0.name, as: UTF8.self) } }

  /// The value of a member; null if there is none.
  ///
  /// - Complexity: O(log n).
  public subscript(name: String) -> JSONValue {
    name.withBytes { self[utf8: $0] }
  }

  /// The value of the member whose name has this UTF-8; null if there is none.
  subscript(utf8 name: UnsafeRawBufferPointer) -> JSONValue {
    members.withUnsafeBufferPointer { members in
      var low = 0
      var high = members.count
      while low < high {
        let middle = (low + high) / 2
        switch Self.compare(members[middle].name, name) {
        case 0: return members[middle].value
        case ..<0: low = middle + 1
        default: high = middle
        }
      }
      return .null
    }
  }

  private static func compare(_ a: [UInt8], _ b: UnsafeRawBufferPointer) -> Int {
    for index in 0..<min(a.count, b.count) where a[index] != b[index] {
      return a[index] < b[index] ? -1 : 1
    }
    return a.count - b.count
  }
}
