/// A value of a JSON text, with its place there.
struct TextValue {
  enum Kind {
    case null
    case boolean(Bool)
    /// As it is spelled.
    case number(String)
    case string(TextString)
    case array([TextValue])
    case object([TextMember])
  }

  let kind: Kind
  /// The bytes of the text that are the value.
  let range: Range<Int>
}

/// A member of an object.
struct TextMember {
  let name: TextString
  let value: TextValue
}

/// A string of a JSON text: what it means, and where each byte of that stands in the text.
struct TextString {
  /// UTF-8.
  private(set) var bytes: [UInt8] = []
  /// Where the first byte after the opening quote stands.
  let start: Int
  /// The place of each byte, from the first escape on: before it, bytes stand as they are.
  private var displaced: [Int32] = []
  private var plainCount = 0

  init(start: Int) { self.start = start }

  /// Appends a byte that stands at `offset`.
  mutating func append(_ byte: UInt8, at offset: Int) {
    if displaced.isEmpty, offset == start + bytes.count {
      plainCount += 1
    } else {
      displaced.append(Int32(truncatingIfNeeded: offset))
    }
    bytes.append(byte)
  }

  /// Where a byte stands in the text; for the count of bytes, or more, the place after the last one.
  func offset(of index: Int) -> Int {
    if index < plainCount || displaced.isEmpty { return start + min(index, bytes.count) }
    let place = index - plainCount
    return place < displaced.count ? Int(displaced[place]) : Int(displaced[displaced.count - 1]) + 1
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }
}
