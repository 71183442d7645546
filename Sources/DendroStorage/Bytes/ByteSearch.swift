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
