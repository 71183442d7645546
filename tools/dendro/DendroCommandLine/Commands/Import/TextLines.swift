/// The lines of a text that is read from front to back, without their ends.
struct TextLines {
  private let source: (UnsafeMutableRawBufferPointer) throws -> Int
  /// A longer line is no line of the format.
  private static let byteLimit = 256 << 20

  init(_ source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) { self.source = source }

  /// Calls `body` with each line and its number, from 1.
  func forEach(_ body: (ArraySlice<UInt8>, Int) throws -> Void) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
    defer { buffer.deallocate() }
    var rest: [UInt8] = []
    var number = 0
    func emit(_ line: ArraySlice<UInt8>) throws {
      number += 1
      var line = line
      if line.last == 0x0D { line.removeLast() }
      if number == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
      try body(line, number)
    }
    while true {
      let count = try source(buffer)
      if count == 0 { break }
      rest.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      var start = 0
      while let end = rest[start...].firstIndex(of: 0x0A) {
        try emit(rest[start..<end])
        start = end + 1
      }
      rest.removeFirst(start)
      guard rest.count <= Self.byteLimit else {
        throw ImportFormat.Malformed(
          line: number + 1, problem: "the line has more than \(Self.byteLimit) bytes")
      }
    }
    if !rest.isEmpty { try emit(rest[...]) }
  }
}
