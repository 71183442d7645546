import DendroPlatform

/// The calls to the system that the commands share: whole writes and reads, the clock, the terminal.
enum Platform {
  static var lastError: String { String(cString: strerror(errno)) }

  /// Writes all bytes. If the reader of a pipe has closed it, SIGPIPE ends the process, unless it is ignored.
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

  /// Opens those of standard input, output and error that are closed: otherwise a file of a database could get such a number
  /// and receive what is printed.
  static func openStandardDescriptors() {
    for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest number that is free. Reads and writes still fail.
      _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
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

  /// How many columns a terminal has; 80 if it does not say.
  static func columnCount(_ descriptor: Int32) -> Int {
    var size = winsize()
    if ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return Int(size.ws_col) }
    return 80
  }

  static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  /// The path with the user's directory in place of a tilde at its beginning.
  static func expandingHome(_ path: String) -> String {
    guard path == "~" || path.hasPrefix("~/"), let home = environment("HOME") else { return path }
    return home + path.dropFirst()
  }

  /// Nanoseconds on a monotonic clock.
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

  /// The path without links and dots; nil if nothing is there.
  static func resolved(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// - Throws: if the working directory is gone.
  static func workingDirectory() throws -> String {
    guard let directory = getcwd(nil, 0) else {
      throw Failure(.inputOutput, "the working directory cannot be found: \(lastError)")
    }
    defer { free(directory) }
    return String(cString: directory)
  }
}
