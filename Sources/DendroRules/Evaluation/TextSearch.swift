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
  func forEachMatch(in text: UnsafeRawBufferPointer, _ body: (Int) -> Bool) {
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

extension Text {
  /// Whether the code points of `other` occur in these, one after the other.
  func contains(_ other: Text) -> Bool {
    if other.count == 0 { return true }
    if other.count == 1 { return bytes.contains(other.bytes[0]) }
    var found = false
    TextSearch(other.bytes).forEachMatch(in: bytes) { _ in
      found = true
      return false
    }
    return found
  }

  func begins(with other: Text) -> Bool { other.bytes.isPrefix(of: bytes) }

  func ends(with other: Text) -> Bool {
    count >= other.count
      && other.bytes.isEqual(to: UnsafeRawBufferPointer(rebasing: bytes.suffix(other.count)))
  }

  /// Replaces each occurrence of `old`. What is empty occurs before each character and at the end.
  ///
  /// - Returns: nil if the result would be longer than `byteCountMax`.
  func replacing(
    _ old: Text, with new: Text, byteCountMax: Int, in texts: inout TextMemory
  ) -> Text? {
    let matches = old.count == 0 ? scalarOffsets : matches(of: old)
    let byteCount = count + matches.count * (new.count - old.count)
    guard byteCount <= byteCountMax else { return nil }
    let result = UnsafeMutableRawBufferPointer(
      start: texts.allocate(byteCount), count: byteCount)
    var end = 0
    func append(_ part: Slice<UnsafeRawBufferPointer>) {
      UnsafeMutableRawBufferPointer(rebasing: result[end..<end + part.count])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
      end += part.count
    }
    var start = 0
    for match in matches {
      append(bytes[start..<match])
      append(new.bytes[...])
      start = match + old.count
    }
    append(bytes[start...])
    return Text(UnsafeRawBufferPointer(result))
  }

  private func matches(of old: Text) -> [Int] {
    var matches: [Int] = []
    TextSearch(old.bytes).forEachMatch(in: bytes) { offset in
      matches.append(offset)
      return true
    }
    return matches
  }

  /// Where each scalar begins, and the end.
  private var scalarOffsets: [Int] {
    bytes.indices.filter { bytes[$0] & 0xC0 != 0x80 } + [count]
  }
}
