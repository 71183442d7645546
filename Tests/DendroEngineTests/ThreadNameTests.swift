#if os(Linux)
  import DendroTesting
  import DendroTree
  import Foundation
  import Testing

  @testable import DendroEngine

  @Suite("The names of the engine's threads")
  struct ThreadNameTests {
    private func threadNames() throws -> [String] {
      let tasks = "/proc/self/task"
      // A thread may end between the listing and the reading.
      return try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap {
        try? String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8)
          .trimmingCharacters(in: .newlines)
      }
    }

    @Test("a debugger can distinguish them")
    func names() async throws {
      let engine = try Engine.open(at: "/db", environment: SimulatedDisk(seed: 1).environment)
      try await engine.write(set("a", .integer(1)))
      try await engine.checkpoint()
      let names = try threadNames()
      #expect(names.contains("dendro-commit"))
      #expect(names.contains("dendro-chkpt"))
      try await engine.close()
    }
  }
#endif
