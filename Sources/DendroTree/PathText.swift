// Paths as text, of which only bytes are compared: for `hasPrefix`, `hasSuffix`, `==` and dictionaries of strings, a slash and
// the combining mark with which a key begins are one character, and two keys may be equal that the tree keeps apart.

extension String {
  /// Whether it begins with the bytes of another text.
  package func startsLiterally(with prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }

  /// Whether it ends with the bytes of another text.
  package func endsLiterally(with suffix: String) -> Bool {
    utf8.reversed().starts(with: suffix.utf8.reversed())
  }

  /// Without so many bytes at its end, which are ASCII.
  package func droppingLast(byteCount: Int) -> String {
    String(decoding: utf8.dropLast(byteCount), as: UTF8.self)
  }

  /// The path before a last segment `.priority`; nil if that is not the last one.
  package var pathOfPriority: String? {
    let name = ".priority"
    // Nearly all paths end otherwise.
    guard utf8.last == UInt8(ascii: "y"), endsLiterally(with: name) else { return nil }
    let rest = utf8.dropLast(name.utf8.count)
    guard let last = rest.last else { return "" }
    guard last == UInt8(ascii: "/") else { return nil }
    return String(decoding: rest.dropLast(), as: UTF8.self)
  }
}

/// A text that is equal to another one only if the bytes are the same.
package struct LiteralText: Hashable {
  private let text: String

  package init(_ text: String) { self.text = text }

  package static func == (a: LiteralText, b: LiteralText) -> Bool {
    a.text.utf8.elementsEqual(b.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
