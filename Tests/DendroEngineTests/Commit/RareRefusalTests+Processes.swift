import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import Testing

@testable import DendroEngine

extension RareRefusalTests {
  // MARK: Processes

  #if canImport(Glibc)
    /// As long as `body` runs, every new thread would get a stack that is larger than the address space,
    /// unless its maker asks for another one: there is none, not even an old one to use again.
    ///
    /// A limit on memory or on the number of threads would not do: the stacks of threads that have ended
    /// are kept for the next ones, and root has no such number.
    private static func withoutThreads(_ body: () -> Void) {
      typealias Call = @convention(c) (UnsafeMutablePointer<pthread_attr_t>) -> CInt
      // GNU's own, which is why they are not imported.
      let (get, set) = (
        unsafeBitCast(dlsym(nil, "pthread_getattr_default_np"), to: Call?.self),
        unsafeBitCast(dlsym(nil, "pthread_setattr_default_np"), to: Call?.self)
      )
      var usual = pthread_attr_t()
      var unusual = pthread_attr_t()
      guard let get, let set, get(&usual) == 0, pthread_attr_init(&unusual) == 0,
        pthread_attr_setstacksize(&unusual, 1 << 47) == 0, set(&unusual) == 0
      else {
        Issue.record("the system takes no such attributes")
        return
      }
      body()
      #expect(set(&usual) == 0)
    }

    @Test("if the system has no thread an engine is refused, and a checkpoint is, until it has")
    func noThread() async {
      await #expect(processExitsWith: .success) {
        let disk = SimulatedDisk(seed: 1)
        let engine = try Engine.open(at: "/db", environment: disk.environment)
        try await engine.write(set("a", .integer(1)))
        var opening: EngineError?
        var checkpoint: EngineError?
        var memory: Engine?
        // No log or metrics closure is set here: its queue needs a thread too, for which Dispatch waits.
        Self.withoutThreads {
          do throws(EngineError) {
            _ = try Engine.open(at: "/other", environment: disk.environment)
          } catch {
            opening = error
          }
          do throws(EngineError) { try engine.checkpoint() } catch { checkpoint = error }
          memory = Engine.inMemory(environment: disk.environment)
        }
        for (error, place) in [(opening, "/other"), (checkpoint, "/db")] {
          guard case .storage(.io("start a thread", place, _, let cause)) = error else {
            Issue.record("\(place): \(error as Any)")
            continue
          }
          #expect(cause.code == EAGAIN)
        }
        await #expect(throws: EngineError.closed) {
          try await memory?.write(set("a", .integer(1)))
        }
        try await memory?.close()
        // Now there is one, for each of them.
        try await engine.checkpoint()
        #expect(engine.statistics().checkpointCount == 1)
        try await Engine.open(at: "/other", environment: disk.environment).close()
        try await engine.close()
      }
    }

    @Test("in a working directory that has gone no relative path is one")
    func goneDirectory() async {
      await #expect(processExitsWith: .success) {
        var template = Array("/tmp/dendro-gone-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) }
        guard let made, chdir(made) == 0, rmdir(made) == 0 else { exit(1) }
        let error = #expect(throws: EngineError.self) { try Engine.open(at: "db") }
        guard case .storage(.io("getcwd", "db", _, .noSuchFile)) = error else { exit(2) }
      }
    }
  #endif
}
