/// A change of one leaf, for `Node.exchange`.
package enum LeafEdit {
  /// Replaces the leaf by one without a priority, given in its packed form.
  case set(UnsafeRawBufferPointer)
  /// Adds to the number of the leaf, or sets the leaf to this number if it has none.
  case increment(Number)

  /// The bytes of the longest leaf that `Node.exchange` sets. Longer ones are put into a box.
  package static let byteCountMax = Page.inlineValueByteCountMax

  /// What an edit has found and done.
  package enum Outcome {
    /// Nothing: `Node.apply` has to do it. The path leads through a leaf, ends at a branch or at a leaf in a
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
  /// - Parameter old: the packed leaf that is there; nil where there is none.
  func withPacked<R>(
    replacing old: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer) -> R
  ) -> R {
    switch self {
    case .set(let packed): return body(packed)
    case .increment(let delta):
      let sum = delta.incrementing(old.flatMap(LeafEdit.number))
      return withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { scratch in
        let start = scratch.baseAddress.unsafelyUnwrapped
        let end = PackedScalar.write(sum, to: start)
        return body(UnsafeRawBufferPointer(start: start, count: end - start))
      }
    }
  }

  /// The number in a packed leaf; nil for other scalars.
  private static func number(_ packed: UnsafeRawBufferPointer) -> Scalar? {
    var address = packed.baseAddress.unsafelyUnwrapped
    if address.load(as: UInt8.self) == PackedScalar.priorityTag {
      address += 1 + PackedScalar.byteCountTrusted(address + 1)
    }
    return PackedScalar.isNumber(address) ? PackedScalar.readTrusted(address).scalar : nil
  }

  /// Whether two packed leaves without priorities are equal.
  static func areEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    let x = a.baseAddress.unsafelyUnwrapped
    let y = b.baseAddress.unsafelyUnwrapped
    if compareBytes(x, a.count, y, b.count) == 0 { return true }
    // An integer and a double may have the same value.
    guard PackedScalar.isNumber(x), PackedScalar.isNumber(y) else { return false }
    return PackedScalar.readTrusted(x).scalar == PackedScalar.readTrusted(y).scalar
  }
}

extension Node {
  /// Edits the leaf at a path in one descent: what `apply` does with `.set` and `.increment`, but no path and
  /// no node is made. Pages that another value shares are copied only where the leaf changes.
  ///
  /// - Parameters:
  ///   - edit: what to do with the leaf.
  ///   - storedPath: the stored bytes of a path whose depth was checked.
  ///   - replaced: gets the packed form of the leaf that is replaced, priority included, before that
  ///     happens; valid only during the call.
  /// - Complexity: O(depth · log children).
  package mutating func exchange(
    _ edit: LeafEdit, at storedPath: UnsafeRawBufferPointer,
    replaced: (UnsafeRawBufferPointer) -> Void
  ) -> LeafEdit.Outcome {
    var place = Pages.Place()
    return exchange(edit, at: storedPath, &place, replaced)
  }

  /// - Parameter place: where the edit was made in place, which is so only if no page on the way is shared.
  @inline(__always)
  mutating func exchange(
    _ edit: LeafEdit, at storedPath: UnsafeRawBufferPointer, _ place: inout Pages.Place,
    _ replaced: (UnsafeRawBufferPointer) -> Void
  ) -> LeafEdit.Outcome {
    if storedPath.isEmpty { return .declined }
    if case .set(let packed) = edit, packed.count > LeafEdit.byteCountMax { return .declined }
    var root = takeBranch()
    guard root != nil else {
      guard isEmpty else { return .declined }
      edit.withPacked(replacing: nil) { assign(.packed($0), at: storedPath) }
      return .inserted
    }
    let outcome = Pages.exchange(
      &root, PathStep(stored: storedPath), edit, &place, replaced)
    guard let root else { preconditionFailure("no edit removes a page") }
    content = .page(root)
    return outcome
  }
}
