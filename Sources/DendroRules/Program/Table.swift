/// Elements that never change, in memory of their own.
///
/// An array that is read from a class is counted each time: a fifteenth of all instructions of a verdict. Why this is
/// sound: the memory is initialised by `init`, never changed, and freed by `free`, which the only
/// owner, a `RuleProgram`, calls in its `deinit`. Indices are checked. Elements are plain values; those that refer to
/// bytes refer to the `ByteBlock` of the same program.
struct Table<Element>: @unchecked Sendable {
  private let start: UnsafeMutablePointer<Element>
  let count: Int

  init(_ elements: [Element]) {
    count = elements.count
    start = .allocate(capacity: max(1, count))
    for (index, element) in elements.enumerated() {
      (start + index).initialize(to: element)
    }
  }

  func free() {
    start.deinitialize(count: count)
    start.deallocate()
  }

  @inline(__always)
  subscript(index: Int) -> Element {
    unsafeAddress {
      precondition(index >= 0 && index < count)
      return UnsafePointer(start + index)
    }
  }
}
