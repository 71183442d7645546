import CDendroXXHash

/// XXH3 of bytes, 64 bits, seeded.
package enum Checksum {
  package static func xxh3(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
    XXH3_64bits_withSeed(bytes.baseAddress, bytes.count, seed)
  }

  /// The low half, for headers of a few dozen bytes.
  static func short(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: xxh3(bytes, seed: seed))
  }
}

/// XXH3 of bytes that come in pieces. A copy shares the state: use one at a time.
package struct ContentHash64 {
  private final class State {
    let pointer: OpaquePointer

    init() {
      guard let pointer = XXH3_createState() else { preconditionFailure("no memory for a hash") }
      self.pointer = pointer
      XXH3_64bits_reset(pointer)
    }

    deinit { XXH3_freeState(pointer) }
  }

  private let state = State()

  package init() {}

  package mutating func combine(_ bytes: UnsafeRawBufferPointer) {
    if bytes.count > 0 { XXH3_64bits_update(state.pointer, bytes.baseAddress, bytes.count) }
  }

  package func finish() -> UInt64 { XXH3_64bits_digest(state.pointer) }
}
