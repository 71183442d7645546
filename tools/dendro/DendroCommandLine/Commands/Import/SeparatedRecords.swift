/// The records of a separated text, as RFC 4180 has them: fields between separators, in quotation marks if they
/// hold separators, quotation marks (doubled) or line ends.
struct SeparatedRecords {
  struct Field {
    var text: String
    var isQuoted: Bool
  }

  private let source: (UnsafeMutableRawBufferPointer) throws -> Int
  private let separator: UInt8
  private static let byteLimit = 256 << 20

  init(_ source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int, separator: UInt8) {
    self.source = source
    self.separator = separator
  }

  private enum State {
    /// At the beginning of a field, in a plain one, between quotation marks, behind a closing one.
    case start, plain, quoted, closed
  }

  /// Calls `body` with the fields of each record, its bytes and the number of its first line. Empty lines are
  /// passed over.
  func forEach(_ body: ([Field], Int, Int) throws -> Void) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
    defer { buffer.deallocate() }
    var state = State.start
    var fields: [Field] = []
    var field: [UInt8] = []
    var (line, firstLine, byteCount) = (1, 1, 0)
    var isQuoted = false
    func fail(_ problem: String) -> ImportFormat.Malformed { .init(line: line, problem: problem) }
    func endField() throws {
      guard let text = String(validating: field, as: UTF8.self) else {
        throw fail("a field is not UTF-8")
      }
      fields.append(Field(text: text, isQuoted: isQuoted))
      field.removeAll(keepingCapacity: true)
      isQuoted = false
      state = .start
    }
    func endRecord() throws {
      if state == .plain, field.last == 0x0D { field.removeLast() }
      let isEmpty = fields.isEmpty && field.isEmpty && !isQuoted
      if isEmpty {
        state = .start
      } else {
        try endField()
        try body(fields, byteCount, firstLine)
      }
      fields.removeAll(keepingCapacity: true)
      byteCount = 0
    }
    var isFirst = true
    while true {
      let count = try source(buffer)
      if count == 0 { break }
      var bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])[...]
      if isFirst, bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
      isFirst = false
      for byte in bytes {
        byteCount += 1
        switch (state, byte) {
        case (.quoted, UInt8(ascii: "\"")): state = .closed
        case (.quoted, _):
          if byte == 0x0A { line += 1 }
          field.append(byte)
        case (.closed, UInt8(ascii: "\"")):
          field.append(byte)
          state = .quoted
        case (_, separator): try endField()
        case (_, 0x0A):
          try endRecord()
          line += 1
          firstLine = line
        case (.closed, 0x0D): break
        case (.closed, _): throw fail("a character behind a quotation mark")
        case (.start, UInt8(ascii: "\"")):
          isQuoted = true
          state = .quoted
        default:
          field.append(byte)
          state = .plain
        }
        guard byteCount <= Self.byteLimit else { throw fail("a record is too long") }
      }
    }
    if state == .quoted { throw fail("a quotation mark is not closed") }
    if byteCount > 0 { try endRecord() }
  }
}
