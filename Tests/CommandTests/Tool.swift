import DendroPlatform
import Foundation
import Testing

/// The built `dendro`, run as a process of its own.
struct Tool {
  struct Outcome {
    var status: Int32
    /// Ended by a signal: a trap, or a kill.
    var wasSignalled: Bool
    var output: String
    var errors: String

    var lines: [Substring] { output.split(separator: "\n") }

    /// Standard output as one JSON object.
    var object: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(output.utf8))) as? [String: Any] ?? [:]
    }
  }

  /// Beside the test bundle, where the package manager puts all executables.
  static let path: String = {
    let own =
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
      ?? CommandLine.arguments[0]
    return (own as NSString).deletingLastPathComponent + "/dendro"
  }()

  let folder: Folder

  @discardableResult
  func callAsFunction(
    _ arguments: String..., input: String? = nil, environment: [String: String] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Outcome {
    try run(arguments, input: input, environment: environment)
  }

  func run(
    _ arguments: [String], input: String? = nil, environment: [String: String] = [:],
    executable: String = Tool.path
  ) throws -> Outcome {
    let running = try start(
      arguments, input: input.map { Data($0.utf8) }, environment: environment,
      executable: executable)
    return try running.wait()
  }

  /// Starts a process; with nil as input, standard input is empty.
  func start(
    _ arguments: [String], input: Data? = nil, environment: [String: String] = [:],
    executable: String = Tool.path
  ) throws -> Running {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
    // The suite collects the reports of sanitizers.
    let sanitizers = ProcessInfo.processInfo.environment.filter { name, _ in
      ["ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"].contains(name)
    }
    // A process that was built to count what it runs leaves no file in the folder.
    process.environment = [
      "PATH": "/usr/bin:/bin", "TERM": "xterm", "LLVM_PROFILE_FILE": "/dev/null",
    ]
    .merging(sanitizers) { $1 }.merging(environment) { $1 }
    // Files, not pipes: nothing has to be read while it runs.
    let output = try folder.file()
    let errors = try folder.file()
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
    if let input {
      let file = try folder.file()
      try input.write(to: URL(fileURLWithPath: file))
      process.standardInput = try FileHandle(forReadingFrom: URL(fileURLWithPath: file))
    } else {
      process.standardInput = FileHandle.nullDevice
    }
    try process.run()
    return Running(process: process, output: output, errors: errors)
  }

  struct Running {
    let process: Process
    let output: String
    let errors: String

    func wait() throws -> Outcome {
      process.waitUntilExit()
      return Outcome(
        status: process.terminationStatus,
        wasSignalled: process.terminationReason == .uncaughtSignal,
        output: text(output), errors: text(errors))
    }

    func text(_ file: String) -> String {
      String(decoding: FileManager.default.contents(atPath: file) ?? Data(), as: UTF8.self)
    }

    /// Waits until `text` has been said, or the process has ended. After two minutes, which only a
    /// failure takes, it gives up.
    func waitForOutput(_ text: String, onErrors: Bool = false) -> Bool {
      let deadline = ContinuousClock.now + .seconds(120)
      while process.isRunning, ContinuousClock.now < deadline {
        if self.text(onErrors ? errors : output).contains(text) { return true }
        usleep(2000)
      }
      return self.text(onErrors ? errors : output).contains(text)
    }

    func send(_ signal: Int32) { kill(process.processIdentifier, signal) }
  }
}

/// A folder that is removed with the test.
final class Folder {
  let path: String
  private var count = 0

  init() throws {
    path = NSTemporaryDirectory() + "dendro-tests-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// A new, empty file.
  func file() throws -> String {
    count += 1
    let file = "\(path)/.file-\(count)"
    try Data().write(to: URL(fileURLWithPath: file))
    return file
  }

  /// Writes a file, and makes the folders that it is to be in.
  func write(_ text: String, to name: String) throws {
    let file = URL(fileURLWithPath: "\(path)/\(name)")
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: file)
  }

  func read(_ name: String) -> String {
    String(decoding: bytes(name), as: UTF8.self)
  }

  func bytes(_ name: String) -> Data {
    FileManager.default.contents(atPath: "\(path)/\(name)") ?? Data()
  }

  func write(_ bytes: Data, to name: String) throws {
    try bytes.write(to: URL(fileURLWithPath: "\(path)/\(name)"))
  }

  func names(in directory: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "\(path)/\(directory)").sorted()
  }
}
