import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import Foundation

/// What only the system itself can show: the flags and modes of real files, in a temporary directory.
package enum RealFiles {
  package static let scenarios = [
    inDirectory("modes", modes),
    inDirectory("a program that is started", descriptors),
    inDirectory("standard streams that are closed", standardStreams),
    inDirectory("a pipe under the name of a segment", namedPipe),
    inDirectory("a path with a NUL", pathNul),
    inDirectory("a tail without end", endlessTail),
    inDirectory("what cannot be synchronized", synchronize),
    inDirectory("a fork that continues when its parent closes", forkedHolder),
  ]

  private static func inDirectory(
    _ name: String, _ body: @escaping @Sendable (_ path: String) throws -> Void
  ) -> Scenario {
    Scenario(name) {
      let path = NSTemporaryDirectory() + "/dendro-\(UUID().uuidString)"
      defer { try? FileManager.default.removeItem(atPath: path) }
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try body(path)
    }
  }

  private static func open(_ path: String) throws(EngineError) -> Engine {
    try Engine.open(at: path, options: EngineRecording.options())
  }

  @Sendable private static func modes(_ path: String) throws {
    let engine = try open(path + "/new/database")
    try engine.put("a", .integer(1))
    try engine.checkpoint()
    try engine.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: path + "/new/database")
    var places = ["new", "new/database"]
    places += names.map { "new/database/\($0)" }
    for place in places {
      var status = stat()
      guard stat(path + "/" + place, &status) == 0 else { throw Violation("there is no \(place)") }
      if status.st_mode & 0o077 != 0 {
        throw Violation("\(place) has mode \(String(status.st_mode, radix: 8))")
      }
    }
  }

  @Sendable private static func descriptors(_ path: String) throws {
    let engine = try open(path)
    defer { try? engine.close() }
    try engine.put("a", .integer(1))
    // Linux lists the descriptors of a process there.
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    for number in numbers.compactMap({ Int32($0) }) {
      let target = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(number)")
      guard let target, target.contains((path as NSString).lastPathComponent) else { continue }
      if fcntl(number, F_GETFD) & FD_CLOEXEC == 0 { throw Violation("\(target) is left open") }
    }
  }

  /// In a child process that does nothing else, so that no other test loses its streams.
  @Sendable private static func standardStreams(_ path: String) throws {
    let disk = DiskFileSystem()
    _ = try disk.open(path + "/file", .openOrCreate)
    let child = try ForkedChild {
      _ = close(0)
      let file = try? disk.open(path + "/file", .openOrCreate)
      return file == nil ? 2 : fcntl(0, F_GETFD) < 0 ? 0 : 1
    }
    try require(child.wait() == 0, "a file took the place of standard input")
  }

  /// The child starts no other program, so it keeps the open files of its parent.
  @Sendable private static func forkedHolder(_ path: String) throws {
    let engine = try open(path)
    let child = try ForkedChild {
      while true { _ = pause() }
    }
    defer {
      child.kill()
      _ = child.wait()
    }
    try engine.close()
    try inContext("it is kept from being opened again") { try open(path).close() }
  }

  @Sendable private static func namedPipe(_ path: String) throws {
    guard mkfifo(path + "/00000000000000000001.log", 0o600) == 0 else { throw Violation("no pipe") }
    try requireError("was served") { () throws(EngineError) in try open(path) }
  }

  @Sendable private static func pathNul(_ path: String) throws {
    let error = try requireError("another file was opened") { () throws(SystemError) in
      try DiskFileSystem().open(path + "/file\0.log", .openOrCreate)
    }
    try require(error == .invalidArgument, "\(error)")
  }

  @Sendable private static func endlessTail(_ path: String) throws {
    try open(path).close()
    let segment = path + "/00000000000000000001.log"
    guard truncate(segment, 1 << 30 + 1 << 20) == 0 else { throw Violation("no room for a hole") }
    let file = try DiskFileSystem().open(segment, .readWrite)
    _ = try [UInt8(1)].withUnsafeBytes { bytes throws(SystemError) in
      try file.write(bytes, at: 100)
    }
    try requireRefusal { () throws(EngineError) in try open(path) }
  }

  /// For a pipe, and for a directory outside any real file system, the system reports that it cannot
  /// synchronize: this shows that it was asked to.
  @Sendable private static func synchronize(_ path: String) throws {
    #if os(Linux)
      let disk = DiskFileSystem()
      guard mkfifo(path + "/pipe", 0o600) == 0 else { throw Violation("no pipe") }
      let pipe = try disk.open(path + "/pipe", .readWrite)
      try requireError("a pipe was synchronized") { () throws(SystemError) in try pipe.synchronize()
      }
      guard access("/proc/self", F_OK) == 0 else { return }
      try requireError("a directory was not synchronized") { () throws(SystemError) in
        try disk.openDirectory("/proc").synchronize()
      }
    #endif
  }
}
