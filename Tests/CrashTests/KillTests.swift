import Foundation
import Testing

/// Real processes with concurrent writers and checkpoints, killed at random moments.
@Suite struct KillTests {
  /// The products are built beside the tests' bundle.
  static func executable(_ name: String) throws -> URL {
    var place = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    // Swift Testing's runner may live in the toolchain; the bundle that it loads does not.
    if let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) {
      place = URL(fileURLWithPath: bundle).deletingLastPathComponent()
    }
    let executable = place.appendingPathComponent(name)
    try #require(
      FileManager.default.isExecutableFile(atPath: executable.path),
      "\(executable.path) is not there: build the package's products first")
    return executable
  }

  /// Nothing acknowledged is lost and nothing is half there, whenever the process dies.
  @Test func killedWritersLoseNothing() throws {
    let process = Process()
    process.executableURL = try Self.executable("crashlab")
    process.arguments = ["kill", "--cycles", "200"]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let output = String(
      decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    print(output, terminator: "")
    #expect(process.terminationReason == .exit)
    #expect(process.terminationStatus == 0, "\(output)")
    #expect(output.contains("kill: 200 cycles, "))
  }
}
