/// The number of a write: 1, 2, 3, … in the order of admission, without a gap; 0 means before the first.
package struct LogSequenceNumber: Hashable, Comparable, Sendable, CustomStringConvertible {
  package var rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  /// Before the first write.
  package static let zero = LogSequenceNumber(0)

  package var next: LogSequenceNumber { LogSequenceNumber(rawValue &+ 1) }
  /// The number before; that of zero is zero, since names of files may say anything.
  package var previous: LogSequenceNumber { LogSequenceNumber(rawValue == 0 ? 0 : rawValue &- 1) }
  package var description: String { String(rawValue) }

  package static func < (a: LogSequenceNumber, b: LogSequenceNumber) -> Bool {
    a.rawValue < b.rawValue
  }
}
