import Dendro
import DendroEngine
import DendroTestSupport
import Dispatch
import Foundation
import Testing

extension TransactionTests {
  @Test("closing waits for no block: what was not admitted fails")
  func closing() async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(at: directory.path)
    let ref = database.reference().child("p")
    try await ref.setValue(1)
    let recorder = Recorder(database)
    let inBlock = DispatchSemaphore(value: 0)
    let isClosed = DispatchSemaphore(value: 0)
    plainly {
      ref.runTransactionBlock { data in
        data.value = 2
        ref.setValue(3) { error, _ in
          recorder.note("within: \((error as? DatabaseError)?.name ?? "nil")")
        }
        inBlock.signal()
        isClosed.wait()
        return .success(withValue: data)
      } andCompletionBlock: {
        recorder.note("running: \(line($0, $1, $2))")
      }
      ref.runTransactionBlock { data in
        recorder.note("ran")
        return .success(withValue: data)
      } andCompletionBlock: {
        recorder.note("waiting: \(line($0, $1, $2))")
        inBlock.signal()
      }
    }
    await withCheckedContinuation { continuation in
      start {
        inBlock.wait()
        #expect(throws: Never.self) { try database.close() }
        isClosed.signal()
        inBlock.wait()
        continuation.resume()
      }
    }
    #expect(
      await recorder.take() == [
        "within: nil", "running: DatabaseClosed, false, nil",
        "waiting: DatabaseClosed, false, nil",
      ])
    let reopened = try await Database.open(at: directory.path)
    #expect(try await reopened.reference().child("p").int == 3)
    try await reopened.close()
  }

  @Test("a block may close the database, which ends the waiting of writers")
  func closingWithin() async throws {
    let database = patientDatabase()
    let ref = database.reference().child("p")
    let runs = Shared(0)
    let writer = Shared<String?>(nil)
    let ended = DispatchSemaphore(value: 0)
    let ending = await ref.ending { data in
      let run = runs.withLock {
        $0 += 1
        return $0
      }
      if run < 4 {
        elsewhere { ref.setValue(run) }
      } else {
        start {
          ref.setValue(5) { error, _ in
            let name = (error as? DatabaseError)?.name
            writer.withLock { $0 = name }
            ended.signal()
          }
        }
        while database.engine!.waitingWriterCount == 0, database.statistics.lastWrite < 4 {
          usleep(1000)
        }
        #expect(throws: Never.self) { try database.close() }
        ended.wait()
      }
      data.value = -1
      return .success(withValue: data)
    }
    #expect(ending == "DatabaseClosed, false, nil")
    // The transaction ends before the block that it waits in.
    while writer.withLock({ $0 }) == nil { await Task.yield() }
    #expect(writer.value == "DatabaseClosed")
    #expect(runs.value == 4)
  }

  @Test("a transaction holds its database until it has ended")
  func holding() async throws {
    let directory = TemporaryDirectory()
    let begins = DispatchSemaphore(value: 0)
    plainly {
      guard let database = try? Database.open(at: directory.path) else { return }
      database.reference().runTransactionBlock { data in
        begins.wait()
        data.value = 1
        return .success(withValue: data)
      }
    }
    begins.signal()
    // The directory is free again once the database has gone.
    var reopened: Database?
    while reopened == nil {
      do {
        reopened = try await Database.open(at: directory.path)
      } catch let error as DatabaseError where error.code == .locked {
        await Task.yield()
      }
    }
    #expect(try await reopened!.reference().int == 1)
    try await reopened!.close()
  }

  @Test("a blocked callback queue holds up no transaction")
  func blockedCallbacks() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("n")
    let goesOn = DispatchSemaphore(value: 0)
    plainly { ref.getData { _, _ in goesOn.wait() } }
    for _ in 0..<10 {
      try await ref.transaction { $0.value = ServerValue.increment(1) }
    }
    #expect(try await ref.int == 10)
    goesOn.signal()
  }
}
