import DendroPlatform
import Foundation
import Testing

/// `dendro serve` as a process of its own, which can be killed.
final class ServerProcess {
  let port: UInt16
  private let process = Process()

  /// Starts a server, and waits for the line that says where it is.
  init(_ directory: String) throws {
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
      .appending(path: "dendro")
    process.arguments = ["serve", directory, "--port", "0", "--json", "--quiet"]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    var line = Data()
    while line.last != UInt8(ascii: "\n") {
      let part = output.fileHandleForReading.availableData
      try #require(!part.isEmpty, "the server has not started")
      line += part
    }
    let object = try JSONSerialization.jsonObject(with: line) as? [String: Any]
    port = UInt16(try #require(object?["port"] as? Int))
  }

  deinit { if process.isRunning { kill() } }

  /// SIGKILL: the server has no say in it.
  func kill() {
    DendroPlatform.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// SIGTERM: the server drains and closes.
  func stop() -> Int32 {
    process.terminate()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
