package import DendroPlatform
import Foundation

/// A disk of a given size, in memory, that can be full. Only root may make one.
package final class SmallDisk: Sendable {
  private let path: String

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// - Parameters:
  ///   - path: where it is to be; the directory is made.
  ///   - owner: of what is on it; nil: whoever runs the tests.
  package init(at path: String, size: Int, owner: (id: uid_t, group: gid_t)? = nil) throws {
    self.path = path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let (id, group) = owner ?? (getuid(), getgid())
    let options = "size=\(size),mode=0700,uid=\(id),gid=\(group)"
    guard mount("tmpfs", path, "tmpfs", 0, options) == 0 else {
      throw Failure(description: "mount \(path): \(String(cString: strerror(errno)))")
    }
  }

  deinit { umount2(path, Int32(MNT_DETACH)) }

  /// Why there can be none on this machine; nil if there can.
  package static var reason: String? {
    do {
      let folder = try TemporaryFolder()
      _ = try SmallDisk(at: folder.path + "/disk", size: 1 << 20)
      return nil
    } catch {
      return "\(error)"
    }
  }

  private var ballast: String { path + "/ballast" }

  /// Takes all room that is left.
  package func fill() throws {
    let file = open(ballast, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    guard file >= 0 else { throw Failure(description: "open \(ballast)") }
    defer { close(file) }
    for size in [1 << 20, 4096] {
      let bytes = [UInt8](repeating: 0, count: size)
      while write(file, bytes, size) > 0 {}
    }
  }

  /// Gives it back.
  package func free() throws {
    guard unlink(ballast) == 0 else { throw Failure(description: "unlink \(ballast)") }
  }
}
