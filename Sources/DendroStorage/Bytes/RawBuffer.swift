/// Growing memory that is freed with its owner.
///
/// Safe use: it cannot be copied and alone frees its memory, and no caller keeps a pointer into it across a
/// call that may grow it.
package struct RawBuffer: ~Copyable {
  package private(set) var capacity = 0
  private var memory: UnsafeMutableRawPointer?

  package init() {}

  deinit { memory?.deallocate() }

  /// The first byte; `reserve` at least one byte before.
  package var base: UnsafeMutableRawPointer {
    guard let memory else { preconditionFailure("a buffer is reserved before it is used") }
    return memory
  }

  /// Makes room for `count` bytes, keeping the first `kept` ones; may move.
  package mutating func reserve(_ count: Int, keeping kept: Int = 0) {
    if count <= capacity, memory != nil { return }
    let grown = max(count, 64)
    let new = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 16)
    if let memory {
      new.copyMemory(from: memory, byteCount: min(kept, capacity))
      memory.deallocate()
    }
    memory = new
    capacity = grown
  }

  /// Frees the memory.
  package mutating func release() {
    memory?.deallocate()
    memory = nil
    capacity = 0
  }
}
