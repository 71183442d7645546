import Dendro
import DendroPlatform
import DendroServer
import Foundation
import Testing

/// The sample of `tools/run demo-sync`, as its users run it.
@Suite("the shopping list of two terminals")
struct ShoppingTests {
  /// One terminal.
  private final class Terminal {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var text = ""

    init(_ url: String) throws {
      let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
        .appending(path: "dendro-shopping")
      process.arguments = [url]
      process.standardInput = input
      process.standardOutput = output
      try process.run()
    }

    deinit { if process.isRunning { process.terminate() } }

    func type(_ line: String) throws {
      try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Reads until there is a line.
    func expect(_ line: String) throws {
      while !text.contains(line + "\n") {
        var polled = pollfd(
          fd: output.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
        let isReady = poll(&polled, 1, 20_000) > 0
        try #require(isReady, "the program is silent behind \(text)")
        let part = output.fileHandleForReading.availableData
        try #require(!part.isEmpty, "the program has ended: \(text)")
        text += String(decoding: part, as: UTF8.self)
      }
      text = text.components(separatedBy: line + "\n").dropFirst().joined(separator: line + "\n")
    }

    func quit() throws -> Int32 {
      try type("quit")
      process.waitUntilExit()
      return process.terminationStatus
    }
  }

  @Test("what one adds the other sees, and what is added offline once it is online")
  func share() async throws {
    try await serving { served, server in
      let url = "http://127.0.0.1:\(server.port)"
      let (ann, bob) = (try Terminal(url), try Terminal(url))
      try ann.expect("-- connected")
      try bob.expect("The list is empty.")
      try ann.type("add bread")
      try ann.expect("To buy: bread")
      try bob.expect("To buy: bread")
      try bob.type("offline")
      try bob.expect("-- not connected")
      try bob.type("add milk")
      try bob.expect("To buy: bread, milk")
      try ann.type("buy bread")
      try ann.expect("To buy: ✓ bread")
      try bob.type("online")
      try bob.expect("To buy: ✓ bread, milk")
      try ann.expect("To buy: ✓ bread, milk")
      #expect(try ann.quit() == 0)
      #expect(try bob.quit() == 0)
      #expect(try await served.reference(withPath: "list").getData().childrenCount == 2)
    }
  }
}
