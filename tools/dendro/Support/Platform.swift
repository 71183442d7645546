#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The calls to the system that the commands share: whole writes and reads, the clock, the terminal.
enum Platform {
  static var lastError: String { String(cString: strerror(errno)) }

  /// Writes all bytes; a reader that has gone ends the process as SIGPIPE does.
  static func writeAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, to name: String)
    throws
  {
    if descriptor <= 2, let output = CapturedOutput.current {
      return output.append(bytes, isError: descriptor == 2)
    }
    var rest = bytes
    while !rest.isEmpty {
      let count = write(descriptor, rest.baseAddress, rest.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw Failure(.inputOutput, "writing \(name) failed: \(lastError)")
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  /// Reads up to the buffer's size; 0 at the end.
  static func readSome(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, from name: String
  ) throws -> Int {
    while true {
      // A signal may come just before the wait begins: so no wait is long.
      var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let isReady = poll(&request, 1, 100) != 0
      if Interruption.isRequested { throw Interruption.Ended() }
      guard isReady else { continue }
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      if errno != EINTR { throw Failure(.inputOutput, "reading \(name) failed: \(lastError)") }
    }
  }

  /// The words of the command line, the tool's own name first; nil for one that is not UTF-8.
  static func arguments() -> [String?] {
    (0..<Int(CommandLine.argc)).map { index in
      CommandLine.unsafeArgv[index].flatMap { String(validatingCString: $0) }
    }
  }

  static func isTerminal(_ descriptor: Int32) -> Bool {
    CapturedOutput.current == nil && isatty(descriptor) == 1
  }

  static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  /// Nanoseconds on a clock that only goes forward.
  static func uptime() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// Milliseconds since 1970.
  static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  static func absolutePath(_ path: String) -> String {
    guard !path.hasPrefix("/") else { return path }
    guard let directory = getcwd(nil, 0) else { return path }
    defer { free(directory) }
    return String(cString: directory) + "/" + path
  }
}

/// A file that is read from front to back, or standard input.
final class InputFile {
  let name: String
  private let descriptor: Int32
  /// Bytes in it; nil for a pipe.
  let size: UInt64?

  /// `-` is standard input.
  init(_ path: String) throws {
    if path == "-" {
      name = "standard input"
      descriptor = 0
    } else {
      name = path
      descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else {
        throw Failure(.inputOutput, "cannot open \(path): \(Platform.lastError)")
      }
    }
    var information = stat()
    if fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG {
      size = UInt64(max(0, information.st_size))
    } else {
      size = nil
    }
  }

  deinit { if descriptor > 0 { close(descriptor) } }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    try Platform.readSome(descriptor, into: buffer, from: name)
  }

  /// All of it, up to a limit that keeps a wrong file from filling the memory.
  func readAll(limit: Int) throws -> [UInt8] {
    var bytes = [UInt8]()
    let part = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 1)
    defer { part.deallocate() }
    while true {
      let count = try read(into: part)
      if count == 0 { return bytes }
      bytes.append(contentsOf: part[..<count])
      guard bytes.count <= limit else {
        throw Failure(.badInput, "\(name) has more than \(Format.bytes(UInt64(limit)))")
      }
    }
  }
}

/// A new file that appears whole or not at all, or standard output.
final class OutputFile {
  private let path: String?
  private let temporary: String
  private let descriptor: Int32
  private var isFinished = false

  init(_ path: String?) throws {
    self.path = path
    guard let path, path != "-" else {
      temporary = ""
      descriptor = 1
      return
    }
    temporary = "\(path).\(getpid()).tmp"
    descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
      throw Failure(.inputOutput, "cannot create \(temporary): \(Platform.lastError)")
    }
  }

  deinit {
    guard descriptor != 1 else { return }
    close(descriptor)
    if !isFinished { unlink(temporary) }
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    try Platform.writeAll(descriptor, bytes, to: path ?? "standard output")
  }

  func finish() throws {
    guard descriptor != 1, let path else { return }
    guard fsync(descriptor) == 0, rename(temporary, path) == 0 else {
      throw Failure(.inputOutput, "cannot finish \(path): \(Platform.lastError)")
    }
    isFinished = true
  }
}
