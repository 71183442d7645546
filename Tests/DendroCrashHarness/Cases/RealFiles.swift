import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What only the system itself can show: the flags and modes of real files, in a temporary directory.
package enum RealFiles {
  package static let sweep = Sweep.cases(
    "real-files",
    [
      inDirectory("modes", modes),
      inDirectory("a program that is started", descriptors),
      inDirectory("standard streams that are closed", standardStreams),
      inDirectory("a pipe under the name of a segment", namedPipe),
      inDirectory("a path with a NUL", pathNul),
      inDirectory("a tail without end", endlessTail),
      inDirectory("what cannot be synchronized", synchronize),
      inDirectory("a fork that goes on when its parent closes", forkedHolder),
    ])

  private static func inDirectory(
    _ name: String, _ problem: @escaping @Sendable (_ path: String) throws -> String?
  ) -> Case {
    Case(name) {
      let path = NSTemporaryDirectory() + "/dendro-\(UUID().uuidString)"
      defer { try? FileManager.default.removeItem(atPath: path) }
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      return try problem(path)
    }
  }

  private static func open(_ path: String) throws(EngineError) -> Engine {
    try Engine.open(at: path, options: EngineRecording.options())
  }

  @Sendable private static func modes(_ path: String) throws -> String? {
    let engine = try open(path + "/new/database")
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    try engine.checkpoint()
    try engine.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: path + "/new/database")
    var places = ["new", "new/database"]
    places += names.map { "new/database/\($0)" }
    for place in places {
      var status = stat()
      guard stat(path + "/" + place, &status) == 0 else { return "there is no \(place)" }
      if status.st_mode & 0o077 != 0 {
        return "\(place) has mode \(String(status.st_mode, radix: 8))"
      }
    }
    return nil
  }

  @Sendable private static func descriptors(_ path: String) throws -> String? {
    let engine = try open(path)
    defer { try? engine.close() }
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    // Linux lists the descriptors of a process there.
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    for number in numbers.compactMap({ Int32($0) }) {
      let target = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(number)")
      guard let target, target.contains((path as NSString).lastPathComponent) else { continue }
      if fcntl(number, F_GETFD) & FD_CLOEXEC == 0 { return "\(target) is left open" }
    }
    return nil
  }

  /// In a child of its own, which does nothing else: nobody's streams are closed.
  @Sendable private static func standardStreams(_ path: String) throws -> String? {
    let disk = DiskFileSystem()
    _ = try disk.open(path + "/file", .openOrCreate)
    guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork") else { return nil }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
    let pid = fork()
    if pid == 0 {
      _ = close(0)
      let file = try? disk.open(path + "/file", .openOrCreate)
      _exit(file == nil ? 2 : fcntl(0, F_GETFD) < 0 ? 0 : 1)
    }
    guard pid > 0 else { return "fork failed" }
    var status: Int32 = -1
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return status == 0 ? nil : "a file took the place of standard input"
  }

  /// It starts no other program, and so holds the very files of its parent.
  @Sendable private static func forkedHolder(_ path: String) throws -> String? {
    guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork") else { return nil }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
    let engine = try open(path)
    let pid = fork()
    if pid == 0 {
      while true { _ = pause() }
    }
    guard pid > 0 else { return "fork failed" }
    defer {
      _ = kill(pid, SIGKILL)
      while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    }
    try engine.close()
    do throws(EngineError) {
      try open(path).close()
      return nil
    } catch {
      return "it is kept from being opened again: \(error)"
    }
  }

  @Sendable private static func namedPipe(_ path: String) throws -> String? {
    guard mkfifo(path + "/00000000000000000001.log", 0o600) == 0 else { return "no pipe" }
    do throws(EngineError) {
      _ = try open(path)
      return "was served"
    } catch {
      return nil
    }
  }

  @Sendable private static func pathNul(_ path: String) throws -> String? {
    do throws(SystemError) {
      _ = try DiskFileSystem().open(path + "/file\0.log", .openOrCreate)
      return "another file was opened"
    } catch {
      return error == .invalidArgument ? nil : "\(error)"
    }
  }

  @Sendable private static func endlessTail(_ path: String) throws -> String? {
    try open(path).close()
    let segment = path + "/00000000000000000001.log"
    guard truncate(segment, 1 << 30 + 1 << 20) == 0 else { return "no room for a hole" }
    let file = try DiskFileSystem().open(segment, .readWrite)
    _ = try [UInt8(1)].withUnsafeBytes { bytes throws(SystemError) in
      try file.write(bytes, at: 100)
    }
    return refusal { () throws(EngineError) in try open(path) }
  }

  /// Of a pipe, and of a directory that is no file system's, the system says that there is nothing to
  /// synchronize: so it was asked.
  @Sendable private static func synchronize(_ path: String) throws -> String? {
    #if os(Linux)
      let disk = DiskFileSystem()
      guard mkfifo(path + "/pipe", 0o600) == 0 else { return "no pipe" }
      let pipe = try disk.open(path + "/pipe", .readWrite)
      do throws(SystemError) {
        try pipe.synchronize()
        return "a pipe was synchronized"
      } catch {}
      guard access("/proc/self", F_OK) == 0 else { return nil }
      do throws(SystemError) {
        try disk.synchronizeDirectory("/proc")
        return "a directory was not synchronized"
      } catch {}
    #endif
    return nil
  }
}
