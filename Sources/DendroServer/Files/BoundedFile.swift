import CDendroCrypto
import DendroPlatform

/// Reads a file that may not be larger than a limit.
enum BoundedFile {
  /// `contents`, or what a test has in its place.
  typealias Reader = @Sendable (_ path: String, _ byteLimit: Int, _ followsLink: Bool) -> [UInt8]?

  /// - Parameter followsLink: whether the last part of the path may be a symbolic link.
  /// - Returns: nil if the file cannot be read as a whole, or has more bytes than the limit.
  @Sendable static func contents(of path: String, byteLimit: Int, followsLink: Bool) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | (followsLink ? 0 : O_NOFOLLOW))
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while bytes.count <= byteLimit {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return nil }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
    return nil
  }
}
