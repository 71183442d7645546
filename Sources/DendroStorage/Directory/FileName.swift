// Every file name that is written, made and parsed in one place.

/// The name of a log segment: the number of the first write that the segment may hold.
package struct SegmentName: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let firstLSN: LogSequenceNumber

  package init(firstLSN: LogSequenceNumber) { self.firstLSN = firstLSN }

  package var fileName: String { padded(firstLSN.rawValue) + ".log" }
  package var description: String { fileName }

  package static func < (a: SegmentName, b: SegmentName) -> Bool { a.firstLSN < b.firstLSN }
}

/// What a name in the directory stands for.
enum FileName: Hashable {
  case segment(SegmentName)
  case checkpoint(LogSequenceNumber)
  /// Bytes that were cut from a segment; `copy` counts the files of the same segment and offset from 0.
  case torn(SegmentName, offset: UInt64, copy: UInt64)
  /// The parity of the segment or checkpoint with this name.
  case parity(of: String)
  case lock
  case readersLock
  /// There while a backup into the directory is under way.
  case unfinishedBackup
  /// There in an archive.
  case archive
  /// An unfinished file of the database.
  case temporary

  static let lockName = "dendro.lock"
  static let readersLockName = "readers.lock"
  static let unfinishedBackupName = "backup.unfinished"
  static let archiveName = "dendro.archive"
  static let temporarySuffix = ".tmp"
  private static let paritySuffix = ".parity"

  static func checkpointName(_ lsn: LogSequenceNumber) -> String {
    padded(lsn.rawValue) + ".checkpoint"
  }

  static func tornName(_ segment: SegmentName, offset: UInt64, copy: UInt64) -> String {
    segment.fileName + ".torn-\(offset)" + (copy == 0 ? "" : "-\(copy)")
  }

  private var mayHaveParity: Bool {
    switch self {
    case .segment, .checkpoint: true
    default: false
    }
  }

  /// - Parameter name: of a segment or a checkpoint.
  static func parityName(of name: String) -> String { name + paritySuffix }

  /// Nil unless the name is exactly one that the database writes.
  init?(_ name: String) {
    if name == Self.lockName {
      self = .lock
    } else if name == Self.readersLockName {
      self = .readersLock
    } else if name == Self.unfinishedBackupName {
      self = .unfinishedBackup
    } else if name == Self.archiveName {
      self = .archive
    } else if name.utf8.count > 4, name.hasSuffix(Self.temporarySuffix) {
      switch FileName(String(name.dropLast(Self.temporarySuffix.count))) {
      case .segment, .checkpoint, .torn, .parity: self = .temporary
      default: return nil
      }
    } else if name.hasSuffix(Self.paritySuffix) {
      let covered = String(name.dropLast(Self.paritySuffix.count))
      guard FileName(covered)?.mayHaveParity ?? false else { return nil }
      self = .parity(of: covered)
    } else {
      let bytes = Array(name.utf8)
      guard bytes.count > 20, let number = decimal(bytes[..<20]) else { return nil }
      let lsn = LogSequenceNumber(number)
      let rest = String(decoding: bytes[20...], as: UTF8.self)
      if rest == ".log" {
        self = .segment(SegmentName(firstLSN: lsn))
      } else if rest == ".checkpoint" {
        self = .checkpoint(lsn)
      } else if rest.hasPrefix(".log.torn-") {
        let parts = rest.utf8.dropFirst(10).split(
          separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count <= 2, let offset = decimal(parts[0]) else { return nil }
        let segment = SegmentName(firstLSN: lsn)
        let copy = parts.count == 2 ? decimal(parts[1]) : 0
        guard let copy, name == Self.tornName(segment, offset: offset, copy: copy) else {
          return nil
        }
        self = .torn(segment, offset: offset, copy: copy)
      } else {
        return nil
      }
    }
  }
}

/// Twenty digits hold every number of 64 bits and sort as the numbers do.
private func padded(_ number: UInt64) -> String {
  let digits = String(number)
  return String(repeating: "0", count: 20 - digits.utf8.count) + digits
}

private func decimal(_ digits: some Collection<UInt8>) -> UInt64? {
  guard !digits.isEmpty, digits.count <= 20 else { return nil }
  var value: UInt64 = 0
  for digit in digits {
    guard digit >= 0x30 && digit <= 0x39 else { return nil }
    let (product, overflow) = value.multipliedReportingOverflow(by: 10)
    let (sum, carry) = product.addingReportingOverflow(UInt64(digit - 0x30))
    if overflow || carry { return nil }
    value = sum
  }
  return value
}
