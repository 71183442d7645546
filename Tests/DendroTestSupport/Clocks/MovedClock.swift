import Foundation

/// The wall clock of a process, which differs from that of the system by as much as is asked for, and can be moved while
/// the process runs. Its other clocks are as they are.
package final class MovedClock: Sendable {
  /// What the process needs in its environment.
  package let environment: [String: String]
  private let file: String

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// - Parameters:
  ///   - library: see `build(in:)`.
  ///   - file: where the difference is to stand.
  package init(_ library: String, _ file: String) throws {
    self.file = file
    environment = ["LD_PRELOAD": library, "DENDRO_MOVED_CLOCK": file]
    guard FileManager.default.createFile(atPath: file, contents: Data(count: 8)) else {
      throw Failure(description: "cannot make \(file)")
    }
  }

  /// Moves it to so far from the system's clock.
  package func set(_ difference: Duration) throws {
    // In place: the process has the file mapped.
    guard let handle = FileHandle(forWritingAtPath: file) else {
      throw Failure(description: "cannot open \(file)")
    }
    try handle.write(contentsOf: withUnsafeBytes(of: difference.components.seconds) { Data($0) })
    try handle.close()
  }

  /// Builds what such a process loads before all else.
  ///
  /// - Returns: its path.
  package static func build(in folder: TemporaryFolder) throws -> String {
    guard let compiler else { throw Failure(description: "no compiler of C") }
    let source = URL(fileURLWithPath: #filePath)
      .appending(path: "../../../MovedClock/clock.c").standardized.path
    let library = folder.path + "/clock.so"
    let process = Process()
    process.executableURL = URL(fileURLWithPath: compiler)
    process.arguments = ["-shared", "-fPIC", "-O2", "-o", library, source]
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure(description: "\(compiler) does not build \(source)")
    }
    return library
  }

  /// The one that came with Swift, or the system's.
  private static let compiler: String? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    let swift = folders.map { "\($0)/swiftc" }
      .filter { FileManager.default.isExecutableFile(atPath: $0) }
      .map {
        URL(fileURLWithPath: $0).resolvingSymlinksInPath().deletingLastPathComponent()
          .appending(path: "clang").path
      }
    return (swift + folders.map { "\($0)/clang" } + folders.map { "\($0)/cc" })
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }()
}
