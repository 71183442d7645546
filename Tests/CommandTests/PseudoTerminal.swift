import DendroPlatform
import Foundation
import Synchronization
import Testing

/// A terminal of a given width for one process: its standard input and standard error.
final class PseudoTerminal: Sendable {
  /// TIOCSPTLCK and TIOCGPTN of `<asm-generic/ioctls.h>`, macros that Swift does not import.
  private static let setLock: UInt = 0x4004_5431
  private static let getNumber: UInt = 0x8004_5430

  private let master: Int32
  private let slave: Int32
  private let said = Mutex<[UInt8]>([])
  private let ended = DispatchSemaphore(value: 0)

  init(columns: UInt16) throws {
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(master >= 0)
    var lock: Int32 = 0
    var number: Int32 = 0
    try #require(ioctl(master, Self.setLock, &lock) == 0)
    try #require(ioctl(master, Self.getNumber, &number) == 0)
    slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(slave >= 0)
    var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    try #require(ioctl(master, UInt(TIOCSWINSZ), &size) == 0)
  }

  deinit { close(master) }

  /// Runs the tool on this terminal, which serves for one run.
  ///
  /// - Parameters:
  ///   - tool: where it runs.
  ///   - words: its arguments.
  ///   - typed: what its user types.
  ///   - withOutput: whether standard output is this terminal too, and not a file.
  /// - Returns: how it ended; `errors` is all that it sent to the terminal.
  func run(
    _ tool: Tool, _ words: [String], typing typed: String = "", withOutput: Bool = false
  ) throws -> Tool.Outcome {
    try run(tool, Tool.path, words, withOutput: withOutput) { $0.type(typed) }
  }

  /// Runs the tool with this terminal as its controlling one, whose keys send it signals, and all its streams.
  ///
  /// - Parameter dialogue: what is typed, each once the text before it has been said since the last.
  func converse(
    _ tool: Tool, _ words: [String], _ dialogue: [(after: String, typed: String)]
  ) throws -> Tool.Outcome {
    let command = ["--ctty", "--wait", Tool.path] + words
    return try run(tool, "/usr/bin/setsid", command, withOutput: true) { terminal in
      var start = 0
      for (text, typed) in dialogue {
        let deadline = ContinuousClock.now + .seconds(120)
        var rest = ""
        while !rest.contains(text), ContinuousClock.now < deadline {
          usleep(2000)
          rest = terminal.said.withLock { String(decoding: $0[start...], as: UTF8.self) }
        }
        #expect(rest.contains(text), "\(rest)")
        start = terminal.said.withLock(\.count)
        terminal.type(typed)
      }
    }
  }

  private func type(_ text: String) {
    var text = text
    _ = text.withUTF8 { write(master, $0.baseAddress, $0.count) }
  }

  private func run(
    _ tool: Tool, _ executable: String, _ words: [String], withOutput: Bool,
    user: (PseudoTerminal) -> Void
  ) throws -> Tool.Outcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = words
    process.currentDirectoryURL = URL(fileURLWithPath: tool.folder.path)
    process.environment = ["PATH": "/usr/bin:/bin", "TERM": "xterm"]
    let output = try tool.folder.file()
    process.standardOutput =
      withOutput
      ? FileHandle(fileDescriptor: slave, closeOnDealloc: false)
      : try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardInput = FileHandle(fileDescriptor: slave, closeOnDealloc: false)
    process.standardError = FileHandle(fileDescriptor: slave, closeOnDealloc: false)
    try process.run()
    close(slave)
    Thread.detachNewThread { [self] in
      var part = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = read(master, &part, part.count)
        // EIO: the last process has closed the other side.
        guard count > 0 else { break }
        said.withLock { $0 += part[..<count] }
      }
      ended.signal()
    }
    user(self)
    process.waitUntilExit()
    ended.wait()
    return Tool.Outcome(
      status: process.terminationStatus,
      wasSignalled: process.terminationReason == .uncaughtSignal,
      output: String(
        decoding: FileManager.default.contents(atPath: output) ?? Data(), as: UTF8.self),
      errors: said.withLock { String(decoding: $0, as: UTF8.self) })
  }
}
