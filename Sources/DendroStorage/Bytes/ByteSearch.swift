import DendroPlatform

// Searches and comparisons of bytes by the C library's functions.

func firstIndex(
  of byte: UInt8, in bytes: UnsafeRawBufferPointer, from start: Int, to end: Int
) -> Int? {
  guard let base = bytes.baseAddress, start < end,
    let found = memchr(base + start, Int32(byte), end - start)
  else { return nil }
  return UnsafeRawPointer(found) - base
}

/// Finds every place of either of two bytes, in order.
struct ByteSearch {
  private let values: (UInt8, UInt8)
  private let bytes: UnsafeRawBufferPointer
  private let end: Int
  private var first: Int?
  private var second: Int?

  init(
    for values: (UInt8, UInt8), in bytes: UnsafeRawBufferPointer, from start: Int = 0, to end: Int
  ) {
    self.values = values
    self.bytes = bytes
    self.end = end
    first = firstIndex(of: values.0, in: bytes, from: start, to: end)
    second = firstIndex(of: values.1, in: bytes, from: start, to: end)
  }

  mutating func next() -> Int? {
    if let place = first, place < second ?? end {
      first = firstIndex(of: values.0, in: bytes, from: place + 1, to: end)
      return place
    }
    guard let place = second else { return nil }
    second = firstIndex(of: values.1, in: bytes, from: place + 1, to: end)
    return place
  }
}

func lastNonZero(_ bytes: UnsafeRawBufferPointer, _ end: Int) -> Int? {
  var index = end
  while index >= 8,
    bytes.loadUnaligned(fromByteOffset: index &- 8, as: UInt64.self) == 0
  {
    index &-= 8
  }
  while index > 0 {
    index &-= 1
    if bytes[index] != 0 { return index }
  }
  return nil
}

/// Whether `bytes` begin with all of `others`.
func isPrefixed(_ bytes: UnsafeRawBufferPointer, by others: UnsafeRawBufferPointer) -> Bool {
  guard bytes.count >= others.count else { return false }
  guard let first = bytes.baseAddress, let second = others.baseAddress else { return true }
  return memcmp(first, second, others.count) == 0
}
