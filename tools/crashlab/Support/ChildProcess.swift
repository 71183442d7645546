import DendroPlatform
import Foundation
import Synchronization

/// A process of ours whose standard output we read to its end, and which we may kill; with its standard
/// error if that is asked for.
final class ChildProcess: Sendable {
  struct StartError: Error, CustomStringConvertible {
    let executable: String
    let code: Int32
    var description: String {
      "\(executable) could not be started: \(String(cString: strerror(code)))"
    }
  }

  enum End: Equatable, CustomStringConvertible {
    case exit(Int32)
    case signal(Int32)

    var description: String {
      switch self {
      case .exit(let code): "exit \(code)"
      case .signal(let number): "signal \(number)"
      }
    }
  }

  let pid: pid_t
  private let output: Int32
  private let received = Mutex<(bytes: [UInt8], isComplete: Bool)>(([], false))

  /// The file of the running program.
  static var ownExecutable: String {
    Bundle.main.executablePath ?? CommandLine.arguments[0]
  }

  /// - `joinsErrors`: whether what it says on standard error is read with the rest, and not ours to say.
  init(_ executable: String, _ arguments: [String], joinsErrors: Bool = false) throws(StartError) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw StartError(executable: executable, code: errno) }
    // Ours alone: a child that held the reading end, or another child's writing end, would keep us
    // from ever seeing the end of the stream.
    _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
    _ = fcntl(ends[1], F_SETFD, FD_CLOEXEC)
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    if joinsErrors { posix_spawn_file_actions_adddup2(&actions, ends[1], 2) }
    defer { posix_spawn_file_actions_destroy(&actions) }
    // A group of its own: Ctrl-C is for us alone, who end it in order, and what it does is judged.
    #if canImport(Darwin)
      var attributes: posix_spawnattr_t?
    #else
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawnattr_init(&attributes)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    posix_spawnattr_setpgroup(&attributes, 0)
    defer { posix_spawnattr_destroy(&attributes) }
    let words = ([executable] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    var pid: pid_t = 0
    let code = posix_spawn(&pid, executable, &actions, &attributes, words + [nil], environ)
    close(ends[1])
    guard code == 0 else {
      close(ends[0])
      throw StartError(executable: executable, code: code)
    }
    self.pid = pid
    output = ends[0]
    Thread.detachNewThread { [self] in drain() }
  }

  private func drain() {
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = read(output, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      received.withLock { $0.bytes += chunk[..<count] }
    }
    close(output)
    received.withLock { $0.isComplete = true }
  }

  /// What it has said so far.
  var said: [UInt8] { received.withLock { $0.bytes } }

  /// The end of what it has said so far, for a message.
  var lastWords: String {
    String(decoding: said.suffix(400), as: UTF8.self)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  func kill() { _ = Foundation.kill(pid, SIGKILL) }

  /// Stops it where it stands, and waits until it does.
  ///
  /// - Returns: false if it had ended before.
  func stop() -> Bool {
    _ = Foundation.kill(pid, SIGSTOP)
    var information = siginfo_t()
    // Left to be waited for, so that `wait()` still learns of the end.
    while waitid(P_PID, id_t(pid), &information, WSTOPPED | WEXITED | WNOWAIT) < 0, errno == EINTR {
    }
    return information.si_code == CLD_STOPPED
  }

  /// Whether it has said all that it ever will: it has ended, or closed its standard output.
  var isComplete: Bool { received.withLock { $0.isComplete } }

  /// Whether nothing that it said is still on its way to us.
  var isHeard: Bool {
    var count: Int32 = 0
    return ioctl(output, UInt(FIONREAD), &count) == 0 && count == 0
  }

  /// Waits for its end and for all that it said; once.
  func wait() -> (end: End, said: [UInt8]) {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    while !received.withLock({ $0.isComplete }) { usleep(200) }
    let signal = status & 0x7f
    return (signal == 0 ? .exit(status >> 8 & 0xff) : .signal(signal), said)
  }
}
