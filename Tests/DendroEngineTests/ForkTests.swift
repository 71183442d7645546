import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Synchronization
import Testing

#if canImport(Glibc)
  @Suite("A fork")
  struct ForkTests {
    @Test("is refused, while its parent continues")
    func childIsRefused() throws {
      // Swift hides fork, since little is safe in the child; what is done there takes no lock.
      let symbol = try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork"))
      let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
      let disk = SimulatedDisk(seed: 1)
      let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
      let draft = try set("a", .integer(1))
      let isRefused = Atomic<Bool>(false)
      let pid = fork()
      if pid == 0 {
        engine.submit(draft) {
          if case .failure(.forked) = $0 { isRefused.store(true, ordering: .relaxed) }
        }
        _exit(isRefused.load(ordering: .relaxed) ? 0 : 1)
      }
      #expect(pid > 0)
      var status: Int32 = -1
      while waitpid(pid, &status, 0) < 0, errno == EINTR {}
      #expect(status == 0)
      engine.submit(draft, completion: nil)
      engine.pump()
      #expect(engine.head.lsn == LogSequenceNumber(1))
      try engine.close()
    }

    @Test("does not keep what its parent has closed", arguments: [false, true])
    func childKeepsNothing(isReader: Bool) throws {
      let symbol = try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork"))
      let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
      let directory =
        FileManager.default.temporaryDirectory.path + "/dendro-fork-\(UUID().uuidString)"
      defer { try? FileManager.default.removeItem(atPath: directory) }
      let engine = try Engine.open(at: directory, options: .inline)
      engine.submit(try set("a", .integer(1)), completion: nil)
      engine.pump()
      if isReader { try engine.close() }
      let held =
        isReader ? try Engine.open(at: directory, options: .inline, mode: .readOnly) : engine
      let pid = fork()
      if pid == 0 {
        while true { pause() }
      }
      defer {
        kill(pid, SIGKILL)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
      }
      try held.close()
      let again = try Engine.open(at: directory, options: .inline)
      again.submit(try set("b", .integer(1)), completion: nil)
      try again.checkpoint()
      // Only if no reader is left.
      try again.purgeHistory()
      try again.close()
    }
  }
#endif
