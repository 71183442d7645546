import DendroTree

/// The bytes of all keys and texts of a program, which its tables refer to.
///
/// Sound as a `Table` is: nothing is changed after it was appended, nothing is moved, and the only owner, a
/// `RuleProgram`, frees it in its `deinit`.
struct ByteBlock: @unchecked Sendable {
  private let start: UnsafeMutableRawPointer
  private let capacity: Int
  private var count = 0

  init(capacity: Int) {
    self.capacity = capacity
    start = .allocate(byteCount: max(1, capacity), alignment: 1)
  }

  func free() { start.deallocate() }

  mutating func append(_ key: Key) -> KeyView {
    KeyView(orderedBytes: key.withOrderedBytes { append($0) })
  }

  mutating func append(_ string: String) -> Text { Text(string.withBytes { append($0) }) }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    precondition(bytes.count <= capacity - count)
    let target = start + count
    if let source = bytes.baseAddress { target.copyMemory(from: source, byteCount: bytes.count) }
    count += bytes.count
    return UnsafeRawBufferPointer(start: target, count: bytes.count)
  }
}
