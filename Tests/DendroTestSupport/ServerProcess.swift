import DendroPlatform
import Foundation

/// `dendro serve` as a process of its own, which can be killed.
package final class ServerProcess {
  package let port: UInt16
  package let directory: String
  private let process = Process()

  /// `dendro`, beside the tests, where the package manager puts all executables.
  package static var executable: String {
    let own =
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
      ?? CommandLine.arguments[0]
    return URL(fileURLWithPath: own).deletingLastPathComponent().appending(path: "dendro").path
  }

  /// Starts a server at a free port, and waits for the line that says where it is.
  ///
  /// - Parameters:
  ///   - arguments: further ones.
  ///   - environment: what its environment has besides that of this process.
  package init(
    _ directory: String, _ arguments: String..., environment: [String: String] = [:]
  ) throws {
    self.directory = directory
    process.executableURL = URL(fileURLWithPath: Self.executable)
    process.arguments = ["serve", directory, "--port", "0", "--json", "--quiet"] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    var line = Data()
    while line.last != UInt8(ascii: "\n") {
      let part = output.fileHandleForReading.availableData
      guard !part.isEmpty else { throw NotStarted() }
      line += part
    }
    let object = try JSONSerialization.jsonObject(with: line) as? [String: Any]
    guard let port = object?["port"] as? Int else { throw NotStarted() }
    self.port = UInt16(port)
  }

  deinit { if process.isRunning { kill() } }

  private struct NotStarted: Error {}

  /// SIGKILL: the server has no say in it.
  package func kill() {
    DendroPlatform.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// SIGSTOP, or SIGCONT.
  package func freeze(_ isFrozen: Bool) {
    DendroPlatform.kill(process.processIdentifier, isFrozen ? SIGSTOP : SIGCONT)
  }

  /// SIGTERM: the server drains and closes.
  package func stop() -> Int32 {
    process.terminate()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
