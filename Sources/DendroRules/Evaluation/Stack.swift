/// A stack that only one evaluation uses: the unsafe type of this module.
///
/// An array would ask at each change whether another array shares its memory: a sixth of all instructions of a
/// verdict. Why it is sound:
/// 1. *Lifetime.* The first memory is lent by the caller of `init`, who keeps it longer than the stack. Later memory
///    is allocated by `grow`, and freed by `grow` or `deinit`: the type cannot be copied, so there is one owner.
/// 2. *Bounds.* `count ≤ capacity`; the first `count` elements are initialised and no others. Indices are less than
///    `count`, which `precondition` checks: no rule and no data can make one that is not.
struct Stack<Element>: ~Copyable {
  private var start: UnsafeMutablePointer<Element>
  private var capacity: Int
  private(set) var count = 0

  private var ownsMemory = false

  /// - Parameter memory: for the first elements; uninitialised. It outlives the stack.
  init(in memory: UnsafeMutableBufferPointer<Element>) {
    guard let start = memory.baseAddress, memory.count > 0 else {
      // Not one element fits into it.
      start = .allocate(capacity: 1)
      capacity = 1
      ownsMemory = true
      return
    }
    self.start = start
    capacity = memory.count
  }

  deinit {
    start.deinitialize(count: count)
    if ownsMemory { start.deallocate() }
  }

  @inline(__always)
  mutating func append(_ element: consuming Element) {
    if count == capacity { grow() }
    (start + count).initialize(to: element)
    count &+= 1
  }

  /// Makes room for some more elements.
  @inline(never)
  private mutating func grow(by added: Int = 1) {
    let larger = max(2 * capacity, count + added)
    let memory = UnsafeMutablePointer<Element>.allocate(capacity: larger)
    memory.moveInitialize(from: start, count: count)
    if ownsMemory { start.deallocate() }
    start = memory
    capacity = larger
    ownsMemory = true
  }

  @discardableResult
  @inline(__always)
  mutating func removeLast() -> Element {
    precondition(count > 0)
    count &-= 1
    return (start + count).move()
  }

  /// Keeps the first `count` elements, or all if there are fewer.
  @inline(__always)
  mutating func truncate(to count: Int) {
    guard self.count > count else { return }
    (start + count).deinitialize(count: self.count &- count)
    self.count = count
  }

  @inline(__always)
  subscript(index: Int) -> Element {
    unsafeAddress {
      precondition(index >= 0 && index < count)
      return UnsafePointer(start + index)
    }
    unsafeMutableAddress {
      precondition(index >= 0 && index < count)
      return start + index
    }
  }

  /// The last element. There is one.
  @inline(__always)
  var top: Element {
    unsafeAddress {
      precondition(count > 0)
      return UnsafePointer(start + (count &- 1))
    }
    unsafeMutableAddress {
      precondition(count > 0)
      return start + (count &- 1)
    }
  }
}

extension Stack<UInt8> {
  /// Appends bytes, which the caller writes.
  @inline(__always)
  mutating func extend(by added: Int) -> UnsafeMutableRawPointer {
    if capacity &- count < added { grow(by: added) }
    let end = UnsafeMutableRawPointer(start + count)
    count &+= added
    return end
  }

  /// Calls `body` with all bytes, which are valid during the call.
  func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    body(UnsafeRawBufferPointer(start: start, count: count))
  }
}
