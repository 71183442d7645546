import DendroPlatform
import Foundation
import Testing

/// A `dendro import` from a pipe that stays open: it has written a part of the value, and waits for more. It is
/// killed if a test ends without it.
final class WaitingImport {
  private let process = Process()
  private let input = Pipe()

  /// - Parameters:
  ///   - start: the part of the value.
  ///   - written: a place that is there once the part was written.
  init(
    _ dendro: Tool, to path: String, _ options: [String], start: some Sequence<UInt8>,
    written: String
  ) throws {
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["import", "\(dendro.folder.path)/db", path, "-"] + options
    process.standardInput = input
    process.standardError = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    input.fileHandleForWriting.write(Data(start))
    while try dendro("get", "db", written).status != 0 {}
  }

  /// Two leaves below `/first`, of which the first was written.
  convenience init(oneOfTwoLeavesWith dendro: Tool, _ options: [String] = []) throws {
    try self.init(
      dendro, to: "/first", ["--chunk-size", "1"] + options, start: #"{"a":1,"b":"#.utf8,
      written: "/first/a")
  }

  deinit { end() }

  /// Kills it.
  func end() {
    guard process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Gives it the rest, after which it ends.
  func finish(_ rest: String) throws {
    input.fileHandleForWriting.write(Data(rest.utf8))
    try input.fileHandleForWriting.close()
  }

  func wait() { process.waitUntilExit() }
}
