import Foundation

/// A mount namespace of the process's own. Other processes do not see its mounts. When the last process in it
/// ends, in whatever way, the kernel unmounts them and releases the loop devices.
enum Namespace {
  private static let variable = "CRASHLAB_NAMESPACE"

  /// Restarts the program in such a namespace; returns if that was done already or is impossible.
  static func enter() {
    #if os(Linux)
      guard getuid() == 0, !isPrivate, refusal == nil, let tool = SystemTool.path(of: "unshare")
      else { return }
      setenv(variable, "1", 1)
      let words =
        [tool] + options + [ChildProcess.ownExecutable] + CommandLine.arguments.dropFirst()
      execv(tool, words.map { strdup($0) } + [nil])
      unsetenv(variable)
    #endif
  }

  private static let options = ["--mount", "--propagation", "private", "--"]

  /// Why there can be none, tried out: in some containers, or where a `chroot` begins in the middle of a
  /// file system.
  private static var refusal: String? {
    do {
      try SystemTool.run("unshare", options + ["true"])
      return nil
    } catch {
      return "\(error)"
    }
  }

  static var isPrivate: Bool { getenv(variable) != nil }

  /// Why nothing can be mounted here; nil if it can.
  static var problem: String? {
    #if os(Linux)
      if getuid() != 0 { return "not root" }
      if !isPrivate { return "no mount namespace of its own: \(refusal ?? "none was asked for")" }
      return nil
    #else
      return "not Linux"
    #endif
  }
}

/// Programs of the system that the lab calls.
enum SystemTool {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  static func path(of name: String) -> String? {
    let folders =
      (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
      + ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
    return folders.map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Runs one to its end.
  static func run(_ name: String, _ arguments: String...) throws { try run(name, arguments) }

  static func run(_ name: String, _ arguments: [String]) throws {
    guard let path = path(of: name) else { throw Failure(description: "\(name) is missing") }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      let text = String(decoding: output, as: UTF8.self)
        .trimmingCharacters(in: .whitespacesAndNewlines)
      throw Failure(description: "\(name) \(arguments.joined(separator: " ")): \(text)")
    }
  }
}
