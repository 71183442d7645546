/// A change at a path, for `Pages.exchange`.
enum LeafEdit {
  /// Replaces the leaf by one without a priority, given in its packed form.
  case set(UnsafeRawBufferPointer)
  /// Adds to the number of the leaf, or sets the leaf to this number if it has none.
  case increment(Number)
  /// Puts a branch without a priority where nothing is.
  case insert(Page)
  /// Puts a branch that has these entries where nothing is; its page is made only then.
  case insertEntries(PageEntries)

  /// The bytes of the longest leaf that `Pages.exchange` sets. Longer ones are put into a box.
  static let byteCountMax = Page.inlineValueByteCountMax

  /// What an edit has found and done.
  enum Outcome {
    /// Nothing: another way has to do it. The path leads through a leaf, ends at a branch or at a leaf in a
    /// box, or the new leaf is too long.
    case declined
    /// Nothing: a page on the way has to be read first, by `Node.load(along:)`.
    case unloaded
    /// Nothing, since the leaf has that value already (1 equals 1.0).
    case unchanged
    /// There was no node at the path.
    case inserted
    /// There was a leaf at the path.
    case replaced
  }

  /// Calls `body` with the packed form of the new leaf, which is valid only during the call.
  ///
  /// - Parameter old: the packed leaf that is there; nil if there is none.
  func withPacked<R>(
    replacing old: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer) -> R
  ) -> R {
    switch self {
    case .insert, .insertEntries: preconditionFailure("a branch is no packed leaf")
    case .set(let packed): return body(packed)
    case .increment(let delta):
      let sum = old.flatMap(LeafEdit.number).map { $0.adding(delta) } ?? delta
      return withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { scratch in
        let start = scratch.baseAddress.unsafelyUnwrapped
        let end = PackedScalar.write(sum.scalar, to: start)
        return body(UnsafeRawBufferPointer(start: start, count: end - start))
      }
    }
  }

  /// The number in a packed leaf; nil for other scalars.
  private static func number(_ packed: UnsafeRawBufferPointer) -> Number? {
    var address = packed.baseAddress.unsafelyUnwrapped
    if address.load(as: UInt8.self) == PackedScalar.priorityTag {
      address += 1 + PackedScalar.byteCountTrusted(address + 1)
    }
    return PackedScalar.isNumber(address) ? PackedScalar.numberTrusted(address).number : nil
  }

  /// Whether two packed leaves without priorities are equal.
  static func areEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    let x = a.baseAddress.unsafelyUnwrapped
    let y = b.baseAddress.unsafelyUnwrapped
    if compareBytes(x, a.count, y, b.count) == 0 { return true }
    // An integer and a double may have the same value.
    guard PackedScalar.isNumber(x), PackedScalar.isNumber(y) else { return false }
    return PackedScalar.numberTrusted(x).number == PackedScalar.numberTrusted(y).number
  }
}
