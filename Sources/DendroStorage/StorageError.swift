import DendroPlatform

/// Why an operation on the files failed, and where.
package enum StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A call on the file system was refused.
  case io(operation: String, path: String, offset: UInt64?, error: SystemError)
  /// Bytes that were once durable read differently now. The file is left as it is.
  case corrupt(path: String, offset: UInt64, expected: String, found: String)
  /// A file, or a part of the log, that other files in the directory need is not there.
  case missing(directory: String, what: String, reason: String)
  /// A file of a format that this version cannot read.
  case unsupportedVersion(path: String, found: UInt32, supported: UInt32)
  /// A file has features that this version does not know; `isReadable` says whether it can read the database
  /// all the same.
  case unsupportedFeatures(path: String, features: UInt32, isReadable: Bool)
  /// Another opener holds the directory; `pid` is 0 if it could not be read.
  case locked(path: String, pid: Int32)
  /// An archive that is being extended has not copied all that is to be removed.
  case archiveBehind(path: String, lastLSN: LogSequenceNumber)
  /// The directory was replaced, or this process is a fork of the opener.
  case ownershipLost(path: String, reason: String)
  /// Something asked for is over a limit.
  case limit(what: String, value: UInt64, limit: UInt64)
  /// There is no database at this path.
  case notFound(path: String)
  /// A backup into this directory was cut short, or is under way.
  case unfinishedBackup(path: String)
  /// An archive is only read.
  case archive(path: String)
  /// The archive does not go on in the log that it is extended from.
  case otherLog(archive: String, reason: String)

  package var description: String {
    switch self {
    case .io(let operation, let path, let offset, let error):
      let place = offset.map { " at offset \($0)" } ?? ""
      return "\(operation) of \(path)\(place) failed: \(error)"
    case .corrupt(let path, let offset, let expected, let found):
      return "\(path) is damaged at offset \(offset): expected \(expected), found \(found)"
    case .missing(let directory, let what, let reason):
      return "\(what) is missing from \(directory): \(reason)"
    case .unsupportedVersion(let path, let found, let supported):
      return "\(path) has format version \(found); this version reads up to \(supported)"
    case .unsupportedFeatures(let path, let features, let isReadable):
      return
        "\(path) has features \(hexadecimal(features)) of a newer version"
        + (isReadable ? "; the database can only be opened for reading" : "")
    case .locked(let path, let pid):
      if pid == 0 { return "\(path) is open already, in this process or in another one" }
      return pid == getpid()
        ? "\(path) is already open in this process (pid \(pid))"
        : "\(path) is open in another process (pid \(pid))"
    case .archiveBehind(let path, let lastLSN):
      return
        "an archive has been copied up to write \(lastLSN) only, and \(path) keeps the log behind it"
    case .ownershipLost(let path, let reason):
      return "\(path) is no longer ours: \(reason)"
    case .limit(let what, let value, let limit):
      return "\(what) is \(value), over the limit of \(limit)"
    case .notFound(let path):
      return "there is no database at \(path)"
    case .unfinishedBackup(let path):
      return
        "the backup in \(path) is not complete: wait for it, back up into it again, or remove it"
    case .archive(let path):
      return "\(path) is an archive, which is only read: restore it into a new directory to write"
    case .otherLog(let archive, let reason):
      return "the archive \(archive) cannot be extended: \(reason)"
    }
  }

  /// Whether files are damaged or missing.
  package var isDamage: Bool {
    switch self {
    case .corrupt, .missing: true
    default: false
    }
  }

  /// Whether a call was refused for a reason that is not in the file.
  package var isOfProcess: Bool {
    if case .io(_, _, _, let error) = self { return error.isOfProcess }
    return false
  }

  /// Whether the disk had no room (ENOSPC, EDQUOT).
  package var isOutOfSpace: Bool {
    if case .io(_, _, _, let error) = self { return error.isOutOfSpace }
    return false
  }
}
