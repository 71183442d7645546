import DendroPlatform

/// The content of one simulated file: pages that copies share until one of them is written.
///
/// Making a crashed disk copies whole disks, and most of what it copies is never touched again; so
/// a copy costs one reference, a write to a copy one page, and preallocated zeros nothing at all.
struct FileImage: Sendable, Hashable {
  static let pageSize = 4096
  /// Past this a write is refused (`EFBIG`), so that a wild offset cannot eat the memory.
  static let sizeLimit = 1 << 36

  private(set) var size = 0
  /// A page may be shorter than `pageSize` and the array than the file: what is missing is zeros.
  /// No byte at or past `size` is ever stored, so growing the file shows zeros.
  private var pages: [[UInt8]] = []

  init() {}

  init(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { write($0, at: 0) }
  }

  var bytes: [UInt8] {
    // One of no capacity would store its count into the object that all empty arrays share.
    if size == 0 { return [] }
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      count = read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
  }

  /// Fills the buffer from `offset` on; returns how many bytes the file had for it.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
    guard offset < UInt64(size) else { return 0 }
    let start = Int(offset)
    let count = min(buffer.count, size - start)
    var done = 0
    while done < count {
      let (index, from) = (start + done).quotientAndRemainder(dividingBy: Self.pageSize)
      let length = min(count - done, Self.pageSize - from)
      let target = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + length])
      let stored = index < pages.count ? max(0, min(length, pages[index].count - from)) : 0
      if stored > 0 {
        pages[index].withUnsafeBytes {
          target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[from..<from + stored]))
        }
      }
      if stored < length {
        // In debug builds, the method of the standard library writes byte by byte.
        memset(target.baseAddress! + stored, 0, length - stored)
      }
      done += length
    }
    return count
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    var done = 0
    while done < bytes.count {
      let (index, from) = (offset + done).quotientAndRemainder(dividingBy: Self.pageSize)
      let length = min(bytes.count - done, Self.pageSize - from)
      while pages.count <= index { pages.append([]) }
      Self.store(
        UnsafeRawBufferPointer(rebasing: bytes[done..<done + length]), at: from, in: &pages[index])
      done += length
    }
    size = max(size, offset + bytes.count)
  }

  mutating func truncate(to newSize: Int) {
    if newSize < size {
      let (full, rest) = newSize.quotientAndRemainder(dividingBy: Self.pageSize)
      if pages.count > full {
        if rest > 0, pages[full].count > rest { pages[full].removeSubrange(rest...) }
        let kept = rest > 0 ? full + 1 : full
        if pages.count > kept { pages.removeSubrange(kept...) }
      }
    }
    size = newSize
  }

  mutating func extend(to newSize: Int) {
    size = max(size, newSize)
  }

  private static func store(
    _ bytes: UnsafeRawBufferPointer, at start: Int, in page: inout [UInt8]
  ) {
    if page.count < start {
      page.append(contentsOf: repeatElement(0, count: start - page.count))
    }
    let overlap = min(bytes.count, page.count - start)
    if overlap > 0 {
      page.withUnsafeMutableBytes {
        UnsafeMutableRawBufferPointer(rebasing: $0[start..<start + overlap])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<overlap]))
      }
    }
    if overlap < bytes.count {
      page.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[overlap...]))
    }
  }

  /// By content: a page that ends early equals one that stores the zeros.
  static func == (a: FileImage, b: FileImage) -> Bool {
    guard a.size == b.size else { return false }
    for index in 0..<max(a.pages.count, b.pages.count) {
      let x = index < a.pages.count ? a.pages[index] : []
      let y = index < b.pages.count ? b.pages[index] : []
      if x == y { continue }
      for place in 0..<max(x.count, y.count)
      where (place < x.count ? x[place] : 0) != (place < y.count ? y[place] : 0) { return false }
    }
    return true
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(size)
    for page in pages {
      let end = page.lastIndex { $0 != 0 } ?? -1
      page.withUnsafeBytes { hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: $0[...end])) }
    }
  }
}
