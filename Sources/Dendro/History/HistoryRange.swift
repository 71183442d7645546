import DendroEngine
import DendroStorage
public import Foundation

extension Database {
  /// The number of a write: 1, 2, 3, … in the order of admission, over the whole life of a database and
  /// without a gap. 0 stands for the empty tree before the first write.
  public typealias LSN = UInt64
}

/// The range of states that can be read: those after each write from ``oldest`` to ``newest``.
public struct HistoryRange: Hashable, Sendable {
  private let bounds: HistoryBounds

  init(_ bounds: HistoryBounds) { self.bounds = bounds }

  /// The first write of the range; 0 if the log reaches back to the beginning.
  public var oldest: Database.LSN { bounds.oldest.rawValue }

  /// When that write was admitted; nil for write 0.
  public var oldestTime: Date? { bounds.oldestTime.map { Date(milliseconds: $0) } }

  /// The last admitted write.
  public var newest: Database.LSN { bounds.newest.rawValue }

  /// When that write was admitted; nil for write 0.
  public var newestTime: Date? { bounds.newestTime.map { Date(milliseconds: $0) } }

  /// Whether the state after this write can be read.
  public func contains(_ lsn: Database.LSN) -> Bool { lsn >= oldest && lsn <= newest }
}

extension HistoryRange: CustomStringConvertible {
  /// The numbers and times, for people.
  public var description: String {
    func place(_ lsn: Database.LSN, _ time: Date?) -> String {
      "\(lsn)" + (time.map { " of \(HistoryTime.text($0))" } ?? "")
    }
    let newest = place(newest, newestTime)
    return oldest == self.newest
      ? "the state after write \(newest)"
      : "the states after the writes \(place(oldest, oldestTime)) to \(newest)"
  }
}

extension Date {
  init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }

  /// Whether it lies in the years 0 to 9999 of Foundation's calendar, which is the Julian one before 1582.
  /// Of other dates ISO 8601's format makes other ones, or the same for all.
  var hasFourDigitYear: Bool {
    let seconds = timeIntervalSince1970
    return seconds >= -62_167_392_000 && seconds < 253_402_300_800
  }
}

/// Times as the log has them, in whole milliseconds.
enum HistoryTime {
  /// Milliseconds since 1970, rounded down; nil for what is no number.
  ///
  /// A `Date` made of whole milliseconds may lie a little below them: what is missing less than a
  /// hundredth of one counts as there.
  static func milliseconds(_ date: Date) -> Int64? {
    let value = date.timeIntervalSince1970 * 1000 + 0.01
    if value.isNaN { return nil }
    return value >= 0x1p63 ? .max : value < -0x1p63 ? .min : Int64(value.rounded(.down))
  }

  /// Date and time in UTC; of what no calendar has a date for, the number.
  static func text(_ date: Date) -> String {
    guard date.hasFourDigitYear else {
      return "\(date.timeIntervalSince1970) seconds after the beginning of 1970"
    }
    return date.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: true))
  }
}
