extension PackedPosition {
  /// Where a range begins or ends: at one position, or before or after all positions with a value.
  package struct Bound: Sendable {
    private let position: PackedPosition
    /// Whether the position is a value alone.
    private let isPrefix: Bool
    private let isExclusive: Bool

    package init(_ bound: QueryParameters.Bound) {
      position = PackedPosition(bound.value, optional: bound.key)
      isPrefix = bound.key == nil
      isExclusive = bound.isExclusive
    }

    /// - Returns: negative, zero or positive, as the position is before, at or after the bound.
    private func compare(_ other: PackedPosition) -> Int {
      if isPrefix {
        return position.withBytes { bound in
          other.withBytes { bytes in
            PackedPosition.compare(
              UnsafeRawBufferPointer(rebasing: bytes.prefix(bound.count)), bound)
          }
        }
      }
      return other == position ? 0 : other < position ? -1 : 1
    }

    /// Whether a position is before a range that starts here.
    func startsAfter(_ other: PackedPosition) -> Bool {
      let side = compare(other)
      return side < 0 || (side == 0 && isExclusive)
    }

    /// Whether a position is after a range that ends here.
    func endsBefore(_ other: PackedPosition) -> Bool {
      let side = compare(other)
      return side > 0 || (side == 0 && isExclusive)
    }
  }

  /// The range of a query; limits are not part of it.
  package struct Range: Sendable {
    private let start: Bound?
    private let end: Bound?

    package init(_ parameters: QueryParameters) {
      start = parameters.start.map(Bound.init)
      end = parameters.end.map(Bound.init)
    }

    package var hasStart: Bool { start != nil }
    package var hasEnd: Bool { end != nil }

    package func isBeforeStart(_ position: PackedPosition) -> Bool {
      start?.startsAfter(position) ?? false
    }

    package func isAfterEnd(_ position: PackedPosition) -> Bool {
      end?.endsBefore(position) ?? false
    }
  }
}
