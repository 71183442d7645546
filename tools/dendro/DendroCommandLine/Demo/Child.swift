import DendroPlatform

/// Another process of this very program, whose standard output is read line by line.
final class Child {
  let pid: pid_t
  private let descriptor: Int32
  private var rest: [UInt8] = []
  private var status: Int32?

  init(arguments: [String]) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw Failure(.inputOutput, "no pipe to a second process: \(Platform.lastError)")
    }
    #if os(Linux)
      var actions = posix_spawn_file_actions_t()
      let executable = "/proc/self/exe"
    #else
      var actions: posix_spawn_file_actions_t?
      let executable = CommandLine.arguments[0]
    #endif
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_addclose(&actions, ends[0])
    posix_spawn_file_actions_addclose(&actions, ends[1])
    defer { posix_spawn_file_actions_destroy(&actions) }

    var words = (["dendro"] + arguments).map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var pid: pid_t = 0
    let result = posix_spawn(&pid, executable, &actions, nil, words, environ)
    close(ends[1])
    guard result == 0 else {
      close(ends[0])
      throw Failure(
        .unavailable, "cannot start \(executable): \(String(cString: strerror(result)))")
    }
    self.pid = pid
    descriptor = ends[0]
  }

  deinit {
    close(descriptor)
    if status == nil {
      kill()
      _ = wait()
    }
  }

  /// Reads what has come, or waits a little for it.
  ///
  /// - Returns: false once the process has closed its output.
  func readLines(_ body: (Substring) throws -> Void) throws -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&request, 1, 50) > 0 else { return true }
    var part = [UInt8](repeating: 0, count: 1 << 16)
    let count = try part.withUnsafeMutableBytes {
      try Platform.readSome(descriptor, into: $0, from: "the writer process")
    }
    guard count > 0 else { return false }
    rest.append(contentsOf: part[..<count])
    guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { return true }
    let text = String(decoding: rest[..<end], as: UTF8.self)
    rest.removeFirst(end + 1)
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) { try body(Substring(line)) }
    return true
  }

  func kill() {
    _ = DendroPlatform.kill(pid, SIGKILL)
  }

  /// Waits for its end and says how it ended.
  func wait() -> String {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    self.status = status
    let signal = status & 0x7F
    return signal == 0 ? "exit code \(status >> 8 & 0xFF)" : "signal \(signal)"
  }
}
