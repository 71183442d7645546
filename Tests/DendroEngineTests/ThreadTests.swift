#if os(Linux)
  import DendroTesting
  import DendroTree
  import Foundation
  import Testing

  @testable import DendroEngine

  @Suite("The names and priorities of the engine's threads")
  struct ThreadTests {
    /// Of a thread by its number; 0 is the calling one.
    private func niceness(of thread: id_t) -> Int32 {
      getpriority(__priority_which_t(PRIO_PROCESS.rawValue), thread)
    }

    /// The niceness of each of the process's threads, by name.
    private func threads() throws -> [String: Int32] {
      let tasks = "/proc/self/task"
      var threads: [String: Int32] = [:]
      for task in try FileManager.default.contentsOfDirectory(atPath: tasks) {
        // A thread may end between the listing and the reading.
        guard let name = try? String(contentsOfFile: "\(tasks)/\(task)/comm", encoding: .utf8),
          let id = UInt32(task)
        else { continue }
        threads[name.trimmingCharacters(in: .newlines)] = niceness(of: id)
      }
      return threads
    }

    @Test("a debugger can distinguish them, and writers come before checkpoints")
    func names() async throws {
      let engine = try Engine.open(at: "/db", environment: SimulatedDisk(seed: 1).environment)
      try await engine.write(set("a", .integer(1)))
      try await engine.checkpoint()
      let threads = try threads()
      let usual = niceness(of: 0)
      #expect(threads["dendro-commit"] == usual)
      #expect(threads["dendro-chkpt"] == min(usual + 5, 19))
      try await engine.close()
    }
  }
#endif
