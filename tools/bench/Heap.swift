#if canImport(Glibc)
  import Glibc

  /// Bytes that the process has taken from the allocator and not given back.
  func heapByteCount() -> Int {
    let information = mallinfo2()
    return Int(information.uordblks) + Int(information.hblkhd)
  }
#else
  /// Not told by this system's allocator.
  func heapByteCount() -> Int { 0 }
#endif
