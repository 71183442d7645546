import Dendro
import Dispatch
import Foundation
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// The statements of the article on concurrency that no other suite has under test.
@Suite("Concurrency")
struct ConcurrencyTests {
  let directory = TemporaryDirectory()

  // MARK: Who holds whom

  @Test(
    "a reference, a query, a snapshot and a listener each hold their database",
    arguments: ["reference", "query", "snapshot", "listener"])
  func holds(what: String) async throws {
    weak var weakly: Database?
    var holder: AnyObject?
    var handle: (DatabaseReference, DatabaseHandle)?
    do {
      let database = Database.inMemory()
      weakly = database
      let ref = database.reference().child("a")
      try await ref.setValue(1)
      switch what {
      case "reference": holder = ref
      case "query": holder = ref.queryOrderedByKey()
      case "snapshot": holder = try await ref.getData()
      default: handle = (ref, ref.observe(.value) { _ in })
      }
      await settle(database)
    }
    #expect(weakly != nil)
    withExtendedLifetime(holder) {}
    if let (ref, handle) = handle { ref.removeObserver(withHandle: handle) }
    holder = nil
    handle = nil
    // What the callback queue still holds goes with its last block.
    while weakly != nil { await Task.yield() }
  }

  @Test("a write's block holds its database until it was called")
  func blockHolds() async throws {
    weak var weakly: Database?
    let queue = DispatchQueue(label: "held")
    queue.suspend()
    let called = Shared(false)
    do {
      let database = try await Database.open(at: directory.path)
      weakly = database
      database.callbackQueue = queue
      database.reference().setValue(1) { error, _ in called.withLock { $0 = error == nil } }
    }
    #expect(weakly != nil)
    queue.resume()
    while weakly != nil { await Task.yield() }
    #expect(called.withLock { $0 })
  }

  @Test("a listener that was removed lets its block go")
  func removedBlockGoes() async throws {
    final class Screen: Sendable {}
    let database = Database.inMemory()
    weak var weakly: Screen?
    let handle: DatabaseHandle
    do {
      let screen = Screen()
      weakly = screen
      handle = database.reference().observe(.value) { _ in withExtendedLifetime(screen) {} }
    }
    await settle(database)
    #expect(weakly != nil)
    database.reference().removeObserver(withHandle: handle)
    while weakly != nil { await settle(database) }
  }

  // MARK: Closing

  @Test("closing: admitted writes go to the disk, and whoever waits for them is told")
  func closingWithWrites() async throws {
    let database = try await Database.open(at: directory.path)
    let ref = database.reference()
    let results = Shared<[Bool]>([])
    var waiting: [Task<Void, any Error>] = []
    for number in 0..<20 {
      waiting.append(Task { _ = try await ref.child("task\(number)").setValue(number) })
    }
    plainly {
      for number in 0..<20 {
        ref.child("block\(number)").setValue(number) { error, _ in
          results.withLock { $0.append(error == nil) }
        }
      }
    }
    try await database.close()
    await settle(database)
    #expect(results.withLock { $0 } == Array(repeating: true, count: 20))
    var written = 20
    for task in waiting {
      // A task that came too late was refused, and nothing else.
      if let error = await failure({ try await task.value }) {
        #expect(error.code == .closed)
      } else {
        written += 1
      }
    }
    let reopened = try await Database.open(at: directory.path)
    #expect(try await reopened.reference().getData().childrenCount == UInt(written))
    try await reopened.close()
  }

  @Test("after closing: snapshots are readable, references know where they are")
  func afterClosing() async throws {
    let database = try await Database.open(at: directory.path)
    let ref = database.reference().child("a")
    try await ref.setValue(["b": ["c": 1], "d": "e"])
    let snapshot = try await ref.getData()
    try await database.close()
    #expect(shown(snapshot.value) == #"{b:{c:1},d:"e"}"#)
    #expect(snapshot["b/c"].int == 1)
    #expect(snapshot.map(\.key) == ["b", "d"])
    #expect(ref.key == "a" && ref.parent == database.reference())
    #expect(ref.child("x").url == database.reference().url + "/a/x")
    #expect(await failure { try await snapshot.ref.setValue(1) }?.code == .closed)
    #expect(await failure { _ = try await ref.queryOrderedByKey().getData() }?.code == .closed)
  }

  @Test("a block may close the database, and what is queued behind it still comes")
  func closingInABlock() async throws {
    let database = try await Database.open(at: directory.path)
    let ref = database.reference()
    let recorder = Recorder(database)
    ref.observe(
      .value,
      with: { snapshot in
        recorder.note("value \(shown(snapshot.value))")
        if snapshot.exists() {
          do { try database.close() } catch { recorder.note("\(error)") }
          do { try database.close() } catch { recorder.note("\(error)") }
        }
      }, withCancel: { _ in recorder.note("cancelled") })
    await settle(database)
    await withCheckedContinuation { continuation in
      ref.setValue(1) { error, _ in
        recorder.note("written \(error == nil)")
        continuation.resume()
      }
    }
    #expect(await recorder.take() == ["value null", "value 1", "written true", "cancelled"])
  }

  @Test("many may close at once")
  func closingAtOnce() async throws {
    let database = try await Database.open(at: directory.path)
    try await database.reference().setValue(1)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { #expect(await failure { try await database.close() } == nil) }
      }
    }
    #expect(await failure { try await database.synchronize() }?.code == .closed)
  }

  // MARK: Cancelling

  @Test("a cancelled task's writes, reads, transactions and barriers go on to their end")
  func cancelled() async throws {
    let path = directory.path
    let database = try await Database.open(at: path)
    let ref = database.reference()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try await ref.child("set").setValue(1)
      try await ref.child("sum").setValue(ServerValue.increment(2))
      #expect(try await ref.child("set").getData().int == 1)
      let (committed, _) = try await ref.child("sum").runTransactionBlock { data in
        data.value = (data.value as? Int ?? 0) * 10
        return .success(withValue: data)
      }
      #expect(committed)
      try await ref.child("sum").transaction { data in data.value = (data.value as? Int ?? 0) + 1 }
      try await database.synchronize()
      try await database.checkpoint()
      try await database.close()
      let reopened = try await Database.open(at: path)
      #expect(shown(try await reopened.reference().getData().value) == "{set:1,sum:21}")
      try await reopened.close()
    }
    task.cancel()
    try await task.value
  }

  @Test("a cancelled wait for a single event goes on until the event")
  func cancelledWait() async throws {
    let database = Database.inMemory()
    let ref = database.reference()
    let task = Task { await ref.observeSingleEventAndPreviousSiblingKey(of: .childAdded) }
    task.cancel()
    await settle(database)
    try await ref.child("a").setValue(1)
    #expect(await task.value.0.key == "a")
  }

  // MARK: Forks

  #if canImport(Glibc)
    @Test("a fork is refused, while its parent goes on")
    func fork() async throws {
      let database = try await Database.open(at: directory.path)
      try await database.reference().setValue(1)
      // Swift hides fork, since little is safe in the child; what is done there takes no lock that
      // another thread may have held.
      let symbol = try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork"))
      let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
      let copy = directory.path + "-copy"
      let pid = fork()
      if pid == 0 {
        func isRefused(_ body: () throws -> Void) -> Bool {
          do {
            try body()
            return false
          } catch {
            return (error as? DatabaseError)?.code == .ownershipLost
          }
        }
        let all =
          isRefused { try database.synchronize() } && isRefused { try database.checkpoint() }
          && isRefused { try database.backup(to: copy) }
        _exit(all ? 0 : 1)
      }
      #expect(pid > 0)
      var status: Int32 = -1
      while waitpid(pid, &status, 0) < 0, errno == EINTR {}
      #expect(status == 0)
      #expect(!FileManager.default.fileExists(atPath: copy))
      try await database.reference().setValue(2)
      try await database.close()
    }
  #endif
}
