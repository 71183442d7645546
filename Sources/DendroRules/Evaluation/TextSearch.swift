/// Finds a string in another in linear time (Knuth, Morris and Pratt, 1977): both may come from a stranger.
struct TextSearch {
  private let pattern: [UInt8]
  /// For each prefix of the pattern, the longest shorter prefix that is its end as well.
  private let borders: [Int32]

  init(_ pattern: some Collection<UInt8>) {
    self.pattern = Array(pattern)
    var borders: [Int32] = [0]
    borders.reserveCapacity(self.pattern.count)
    var length = 0
    for index in self.pattern.indices.dropFirst() {
      while length > 0, self.pattern[index] != self.pattern[length] {
        length = Int(borders[length - 1])
      }
      if self.pattern[index] == self.pattern[length] { length += 1 }
      borders.append(Int32(length))
    }
    self.borders = borders
  }

  /// Calls `body` with the offset of each occurrence that does not overlap the one before, until it returns
  /// false. The pattern has at least one byte.
  func forEachMatch(in text: UnsafeBufferPointer<UInt8>, _ body: (Int) -> Bool) {
    guard let first = pattern.first, text.count >= pattern.count else { return }
    var length = 0
    var index = 0
    while index < text.count {
      let byte = text[index]
      if length == 0, byte != first {
        index += 1
        continue
      }
      while length > 0, byte != pattern[length] { length = Int(borders[length - 1]) }
      if byte == pattern[length] { length += 1 }
      index += 1
      if length == pattern.count {
        if !body(index - length) { return }
        length = 0
      }
    }
  }
}

extension String {
  /// Whether the code points of `other` occur in these, one after the other.
  func containsText(_ other: String) -> Bool {
    if other.isEmpty { return true }
    var found = false
    let search = TextSearch(other.utf8)
    withBytes { text in
      search.forEachMatch(in: text) { _ in
        found = true
        return false
      }
    }
    return found
  }

  func beginsWithText(_ other: String) -> Bool {
    utf8.count >= other.utf8.count && utf8.starts(with: other.utf8)
  }

  func endsWithText(_ other: String) -> Bool {
    utf8.count >= other.utf8.count && utf8.suffix(other.utf8.count).elementsEqual(other.utf8)
  }

  /// Replaces each occurrence of `old`. What is empty occurs before each character and at the end.
  ///
  /// - Returns: nil if the result would be longer than `byteCountMax`.
  func replacingText(_ old: String, with new: String, byteCountMax: Int) -> String? {
    let (old, new) = (Array(old.utf8), Array(new.utf8))
    return withBytes { text in
      let matches = old.isEmpty ? text.scalarOffsets : Self.matches(of: old, in: text)
      let byteCount = text.count + matches.count * (new.count - old.count)
      guard byteCount <= byteCountMax else { return nil }
      var result: [UInt8] = []
      result.reserveCapacity(byteCount)
      var start = 0
      for match in matches {
        result.append(contentsOf: text[start..<match])
        result.append(contentsOf: new)
        start = match + old.count
      }
      result.append(contentsOf: text[start...])
      return String(decoding: result, as: UTF8.self)
    }
  }

  private static func matches(of old: [UInt8], in text: UnsafeBufferPointer<UInt8>) -> [Int] {
    var matches: [Int] = []
    TextSearch(old).forEachMatch(in: text) { offset in
      matches.append(offset)
      return true
    }
    return matches
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Where each scalar begins, and the end.
  fileprivate var scalarOffsets: [Int] {
    indices.filter { self[$0] & 0xC0 != 0x80 } + [count]
  }
}
