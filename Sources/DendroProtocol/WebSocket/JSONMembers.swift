package import DendroTree

/// The members of a JSON object, each with the bytes of its value, which nothing has looked into.
///
/// For messages whose members follow rules of their own: a `null` that counts, keys that are paths.
package struct JSONMembers: Sendable {
  private let bytes: ArraySlice<UInt8>
  private let members: [Member]

  struct Member: Sendable {
    let name: Name
    /// Of the value.
    let range: Range<Int>
  }

  enum Name: Sendable {
    /// Stands in the text as it is: ASCII without escapes.
    case plain(Range<Int>)
    case decoded(String)
  }

  /// - Parameter members: with the ranges of their values in `bytes`.
  init(_ members: [Member], of bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    self.members = members
  }

  /// - Returns: nil if the text is no object, or one of more than 4,096 members. What is wrong within a value shows when
  ///   that is parsed.
  /// - Complexity: O(n).
  package init?(_ bytes: ArraySlice<UInt8>) {
    let members = bytes.withUnsafeBytes { text -> [Member]? in
      var scanner = MemberScanner(text, from: bytes.startIndex)
      return scanner.object()
    }
    guard let members else { return nil }
    self.init(members, of: bytes)
  }

  /// The bytes of a value; of several with the name, the last.
  ///
  /// - Complexity: O(members).
  package subscript(name: String) -> ArraySlice<UInt8>? { range(of: name).map { bytes[$0] } }

  private func range(of name: String) -> Range<Int>? {
    // As most names are.
    if name.utf8.count == 1, let letter = name.utf8.first { return range(of: letter) }
    var name = name
    return name.withUTF8 { name in
      bytes.withUnsafeBytes { text in
        members.last { isNamed($0, name, text) }?.range
      }
    }
  }

  /// - Parameter letter: of ASCII, which is the whole name.
  private func range(of letter: UInt8) -> Range<Int>? {
    bytes.withUnsafeBytes { text in
      for member in members.reversed() {
        switch member.name {
        case .plain(let range):
          guard range.count == 1, text[range.lowerBound - bytes.startIndex] == letter else { break }
          return member.range
        case .decoded(let name):
          guard name.utf8.count == 1, name.utf8.first == letter else { break }
          return member.range
        }
      }
      return nil
    }
  }

  @inline(__always)
  private func isNamed(
    _ member: Member, _ name: UnsafeBufferPointer<UInt8>, _ text: UnsafeRawBufferPointer
  ) -> Bool {
    switch member.name {
    case .plain(let range):
      guard range.count == name.count else { return false }
      let start = range.lowerBound - bytes.startIndex
      for index in 0..<name.count where text[start + index] != name[index] { return false }
      return true
    case .decoded(let decoded): return decoded.utf8.elementsEqual(name)
    }
  }

  /// Calls `use` with a string that stands in the text as it is: ASCII without escapes.
  ///
  /// - Returns: nil if it is something else, or none.
  func withPlainString<R>(_ name: String, _ use: (UnsafeRawBufferPointer) -> R) -> R? {
    guard let range = range(of: name) else { return nil }
    let (start, end) = (range.lowerBound - bytes.startIndex, range.upperBound - bytes.startIndex)
    return bytes.withUnsafeBytes { text in
      MemberScanner.isPlain(UnsafeRawBufferPointer(rebasing: text[start..<end]))
        ? use(UnsafeRawBufferPointer(rebasing: text[start + 1..<end - 1])) : nil
    }
  }

  /// The objects of an array; nil if the text is no array of objects.
  package static func objects(_ bytes: ArraySlice<UInt8>) -> [JSONMembers]? {
    let ranges = bytes.withUnsafeBytes { text -> [Range<Int>]? in
      var scanner = MemberScanner(text, from: bytes.startIndex)
      return scanner.array()
    }
    guard let ranges else { return nil }
    var objects: [JSONMembers] = []
    for range in ranges {
      guard let object = JSONMembers(bytes[range]) else { return nil }
      objects.append(object)
    }
    return objects
  }

  /// The names of all members.
  package var names: [String] {
    members.map { member in
      switch member.name {
      case .plain(let range): String(decoding: bytes[range], as: UTF8.self)
      case .decoded(let name): name
      }
    }
  }

  // MARK: Values

  /// An object.
  package func object(_ name: String) -> JSONMembers? { self[name].flatMap { JSONMembers($0) } }

  /// A scalar; nil if there is none, and inside nil for null.
  package func scalar(_ name: String) -> Scalar?? {
    self[name].flatMap { value in value.withUnsafeBytes { Self.scalar($0) } }
  }

  /// The scalar that a text is; nil if it is none, and inside nil for null.
  static func scalar(_ text: UnsafeRawBufferPointer) -> Scalar?? {
    guard let first = text.first, first != UInt8(ascii: "{"), first != UInt8(ascii: "[") else {
      return nil
    }
    // Most messages have nothing but these.
    if let text = MemberScanner.plainString(text) { return .string(text) }
    if let number = MemberScanner.plainInteger(text) { return .integer(number) }
    return (try? JSONParser.parse(text)).map(\.scalar)
  }

  package func string(_ name: String) -> String? {
    if case .string(let text)?? = scalar(name) { text } else { nil }
  }

  /// The strings of an array; none if it is something else.
  package func strings(_ name: String) -> [String] {
    guard let value = self[name], value.first == UInt8(ascii: "[") else { return [] }
    guard let node = value.withUnsafeBytes({ try? JSONParser.parse($0) }) else { return [] }
    return node.children.compactMap { if case .string(let text)? = $1.scalar { text } else { nil } }
  }

  package func integer(_ name: String) -> Int64? {
    if case .integer(let number)?? = scalar(name) { number } else { nil }
  }

  package func bool(_ name: String) -> Bool? {
    if case .bool(let value)?? = scalar(name) { value } else { nil }
  }
}
