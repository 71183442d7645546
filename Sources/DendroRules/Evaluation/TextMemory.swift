/// The memory of texts that one verdict makes: what rules add and replace, and strings that are in no other memory.
///
/// Why it is sound:
/// 1. *Lifetime.* `reset` and `deinit` alone end what was allocated. The evaluation calls `reset` when no value and no
///    place of an expression is left. The first memory is lent by the caller of `init`, who keeps it longer than this.
/// 2. *Addresses.* Nothing is moved: when a piece of memory is full, another one is added.
struct TextMemory: ~Copyable {
  private let lent: UnsafeMutableRawBufferPointer
  private var next: UnsafeMutableRawPointer
  private var end: UnsafeMutableRawPointer
  private var pieces: [UnsafeMutableRawPointer] = []
  private var pieceByteCount: Int
  /// Strings whose bytes are texts.
  private var kept: [String] = []
  /// Whether there are pieces or strings.
  private var isLarge = false

  /// - Parameter memory: for the first texts.
  init(in memory: UnsafeMutableRawBufferPointer) {
    guard let start = memory.baseAddress, memory.count > Self.inlineByteCountMax else {
      preconditionFailure("a memory begins with room for texts")
    }
    lent = memory
    next = start + Self.inlineByteCountMax
    end = start + memory.count
    pieceByteCount = memory.count
  }

  deinit { for piece in pieces { piece.deallocate() } }

  /// Room for so many bytes, uninitialised.
  @inline(__always)
  mutating func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
    if end - next < byteCount { grow(byteCount) }
    let start = next
    next += byteCount
    return start
  }

  /// Gives back what lies behind `end`, which is within the room that was allocated last.
  @inline(__always)
  mutating func shrink(to end: UnsafeMutableRawPointer) { next = end }

  @inline(never)
  private mutating func grow(_ byteCount: Int) {
    pieceByteCount = min(2 * pieceByteCount, Self.pieceByteCountMax)
    let count = max(pieceByteCount, byteCount)
    next = .allocate(byteCount: count, alignment: 1)
    end = next + count
    pieces.append(next)
    isLarge = true
  }

  /// Forgets all texts but that of `text(ofLasting:)`.
  @inline(__always)
  mutating func reset() {
    if isLarge { free() }
    let start = lent.baseAddress.unsafelyUnwrapped
    next = start + Self.inlineByteCountMax
    end = start + lent.count
  }

  @inline(never)
  private mutating func free() {
    for piece in pieces { piece.deallocate() }
    pieces = []
    pieceByteCount = lent.count
    kept = []
    isLarge = false
  }

  // MARK: Texts

  mutating func copy(_ bytes: UnsafeRawBufferPointer) -> Text {
    let start = allocate(bytes.count)
    if let source = bytes.baseAddress { start.copyMemory(from: source, byteCount: bytes.count) }
    return Text(UnsafeRawBufferPointer(start: start, count: bytes.count))
  }

  mutating func joined(_ a: Text, _ b: Text) -> Text {
    let start = allocate(a.count + b.count)
    if let source = a.bytes.baseAddress { start.copyMemory(from: source, byteCount: a.count) }
    if let source = b.bytes.baseAddress {
      (start + a.count).copyMemory(from: source, byteCount: b.count)
    }
    return Text(UnsafeRawBufferPointer(start: start, count: a.count + b.count))
  }

  /// The text of a string that the caller keeps longer than this memory.
  mutating func text(of string: String) -> Text {
    // A longer string has an object of its own, in which its bytes stay where they are.
    if string.utf8.count > Self.inlineByteCountMax,
      let bytes = string.utf8.withContiguousStorageIfAvailable({ UnsafeRawBufferPointer($0) })
    {
      return Text(bytes)
    }
    return string.withBytes { copy($0) }
  }

  /// As `text(of:)`, and it outlives a `reset`. For one string alone: the next one takes its place.
  mutating func text(ofLasting string: String) -> Text {
    string.withBytes { bytes in
      guard bytes.count <= Self.inlineByteCountMax else { return text(of: string) }
      let start = lent.baseAddress.unsafelyUnwrapped
      if let source = bytes.baseAddress { start.copyMemory(from: source, byteCount: bytes.count) }
      return Text(UnsafeRawBufferPointer(start: start, count: bytes.count))
    }
  }

  /// The text of a string that is kept by this memory alone.
  mutating func text(keeping string: String) -> Text {
    if string.utf8.count > Self.inlineByteCountMax {
      kept.append(string)
      isLarge = true
    }
    return text(of: string)
  }

  /// The bytes of a piece, unless a text is longer.
  private static let pieceByteCountMax = 1 << 16
  /// The most bytes that a string may have within itself.
  private static let inlineByteCountMax = 15
}
