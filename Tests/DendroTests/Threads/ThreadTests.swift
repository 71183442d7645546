import Dendro
import Foundation
import Testing

#if os(Linux)
  @Suite("Threads")
  struct ThreadTests {
    private static func threadCount() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
    }

    @Test("a database that is released without being closed leaves no thread behind")
    func droppedDatabases() async {
      // In a process of its own: elsewhere other tests' threads come and go.
      await #expect(processExitsWith: .success) {
        let directory = TemporaryDirectory()
        for round in 0..<100 {
          var database: Database?
          // Its predecessor gives the directory back when its thread has come to the end.
          while database == nil {
            do {
              database = try await Database.open(at: directory.path)
            } catch let error as DatabaseError where error.code == .locked {
              await Task.yield()
            }
          }
          let reference = try #require(database?.reference())
          try await reference.child("k\(round)").setValue(round)
          let handle = reference.observe(.value) { _ in }
          if round % 2 == 0 { try await database?.checkpoint() }
          reference.removeObserver(withHandle: handle)
          let memory = Database.inMemory()
          try await memory.reference().setValue(round)
          if round % 3 == 0 { try await database?.close() }
        }
        // A hundred databases with up to two threads each, and a hundred in memory with one.
        #expect(try Self.threadCount() < 60)
      }
    }
  }
#endif
