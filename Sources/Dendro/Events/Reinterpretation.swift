/// Reads values as ones of another type that has the same form in memory. `ReinterpretationTests` tests what the
/// callers rely on:
///
/// - A block with `@isolated(any)` is called like one without. The attribute adds a value to what the function
///   captures; it does not change how the function is called. (`MainActor.assumeIsolated` does the same with
///   `@MainActor`.)
/// - An optional reference is one word, 0 for nil, whether its references are counted or not.
enum Reinterpretation {
  static func value<Value, Other>(_ value: Value, as other: Other.Type) -> Other {
    precondition(MemoryLayout<Value>.size == MemoryLayout<Other>.size, "values of one size")
    return unsafeBitCast(value, to: other)
  }

  /// - Parameter body: gets the elements of the array, which it keeps.
  @inline(__always)
  static func elements<Element, Other>(
    of array: [Element], as other: Other.Type, _ body: (UnsafeBufferPointer<Other>) -> Void
  ) {
    precondition(
      MemoryLayout<Element>.size == MemoryLayout<Other>.size
        && MemoryLayout<Element>.stride == MemoryLayout<Other>.stride, "elements of one size")
    array.withUnsafeBufferPointer { elements in
      elements.withMemoryRebound(to: other) { body($0) }
    }
  }
}
