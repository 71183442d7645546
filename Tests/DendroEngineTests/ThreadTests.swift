#if os(Linux)
  import DendroTesting
  import DendroTree
  import Foundation
  import Testing

  @testable import DendroEngine

  @Suite("The names and priorities of the engine's threads")
  struct ThreadTests {
    /// The names of the process's threads, and how nice each is.
    private func threads() throws -> [String: Set<Int>] {
      let tasks = "/proc/self/task"
      var threads: [String: Set<Int>] = [:]
      for task in try FileManager.default.contentsOfDirectory(atPath: tasks) {
        // A thread may end between the listing and the reading. «7 (name) S 1 …»: the state is the third field,
        // the niceness the nineteenth.
        guard let status = try? String(contentsOfFile: "\(tasks)/\(task)/stat", encoding: .utf8),
          let start = status.firstIndex(of: "("), let end = status.lastIndex(of: ")"),
          let niceness = Int(status[end...].split(separator: " ")[17])
        else { continue }
        threads[String(status[start..<end].dropFirst()), default: []].insert(niceness)
      }
      return threads
    }

    @Test("a debugger can distinguish them, and writers come before checkpoints")
    func names() async throws {
      let engine = try Engine.open(at: "/db", environment: SimulatedDisk(seed: 1).environment)
      try await engine.write(set("a", .integer(1)))
      try await engine.checkpoint()
      let threads = try threads()
      // A thread has its creator's name until it gives itself its own, which it does last.
      let usual = try #require(threads["dendro-commit"]?.min())
      #expect(threads["dendro-chkpt"] == [min(usual + 5, 19)])
      try await engine.close()
    }
  }
#endif
