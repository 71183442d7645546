import DendroPlatform

/// An `errno` value.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  package let code: Int32

  package init(_ code: Int32) { self.code = code }

  package static let interrupted = SystemError(EINTR)
  package static let inputOutput = SystemError(EIO)
  package static let noSpace = SystemError(ENOSPC)
  package static let quotaExceeded = SystemError(EDQUOT)
  package static let noSuchFile = SystemError(ENOENT)
  package static let notDirectory = SystemError(ENOTDIR)
  package static let exists = SystemError(EEXIST)
  package static let wouldBlock = SystemError(EWOULDBLOCK)
  package static let notSupported = SystemError(EOPNOTSUPP)
  package static let readOnly = SystemError(EROFS)
  package static let invalidArgument = SystemError(EINVAL)
  package static let permissionDenied = SystemError(EACCES)
  /// A file that this process has closed.
  package static let closed = SystemError(EBADF)

  package var isOutOfSpace: Bool { code == ENOSPC || code == EDQUOT }
  /// Whether the medium does not give the bytes back, or something else than a file stands in its place.
  package var isOfMedium: Bool { code == EIO || code == EISDIR }
  /// Whether the process or the system has no file descriptor left.
  package var isOutOfDescriptors: Bool { code == EMFILE || code == ENFILE }
  /// Whether the reason is not in the file: the process lacks a descriptor, memory or a permission.
  package var isOfProcess: Bool {
    isOutOfDescriptors || code == ENOMEM || code == EACCES || code == EPERM
  }
  package var description: String { "\(String(cString: strerror(code))) (errno \(code))" }
}
