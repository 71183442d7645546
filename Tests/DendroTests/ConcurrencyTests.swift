import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
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

  // MARK: The last reference

  /// The directory is let go soon after the last reference, on another thread.
  private func openOnceFree() async throws -> Database {
    while true {
      do {
        return try await Database.open(at: directory.path)
      } catch let error as DatabaseError where error.code == .locked {
        await Task.yield()
      }
    }
  }

  @Test("writes that nobody waits for go to the disk though their database goes")
  func lastReferenceWrites() async throws {
    for durability: Dendro.Durability in [.everyCommit, .interval(.seconds(3600)), .onRequest] {
      do {
        let database = try await Database.open(
          at: directory.path, options: DatabaseOptions(durability: durability))
        plainly { for number in 0..<100 { database.reference().child("\(number)").setValue(1) } }
      }
      let reopened = try await openOnceFree()
      #expect(try await reopened.reference().getData().childrenCount == 100)
      try await reopened.reference().removeValue()
      try await reopened.close()
    }
  }

  @Test("where the disk refuses them then, the error handler is told")
  func lastReferenceFailure() async throws {
    let disk = SimulatedDisk(seed: 1)
    let error: DatabaseError = await withCheckedContinuation { continuation in
      let waiting = Mutex<CheckedContinuation<DatabaseError, Never>?>(continuation)
      plainly {
        var options = DatabaseOptions()
        options.errorHandler = { error in
          let continuation = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
          }
          continuation?.resume(returning: error)
        }
        let database = try? Database.open(
          at: "/db", options: options,
          environment: Environment(
            fileSystem: disk, clock: SimulatedClock(), randomness: SeededRandomness(seed: 1)),
          mode: .readWrite)
        disk.inject(.failedSynchronize(at: 1, pages: .kept))
        database?.reference().setValue(1)
      }
    }
    #expect(error.code == .poisoned)
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
      try await database.backup(to: path + "-copy")
      try await database.close()
      let reopened = try await Database.open(at: path)
      #expect(shown(try await reopened.reference().getData().value) == "{set:1,sum:21}")
      try await reopened.close()
    }
    task.cancel()
    try await task.value
    let copy = try await Database.open(at: path + "-copy")
    #expect(shown(try await copy.reference().getData().value) == "{set:1,sum:21}")
    try await copy.close()
    try FileManager.default.removeItem(atPath: path + "-copy")
  }

  @Test("what a cancelled task registers is called as ever, and its snapshots and references stay")
  func cancelledCallbacks() async throws {
    let database = Database.inMemory()
    let recorder = Recorder(database)
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      let ref = database.reference().child("a")
      let before = try await ref.getData()
      plainly {
        ref.observe(.value) { recorder.note("value \(shown($0.value))") }
        ref.setValue(1) { error, _ in recorder.note("written \(error == nil)") }
        ref.runTransactionBlock(
          { data in
            data.value = 2
            return .success(withValue: data)
          }, andCompletionBlock: { _, committed, _ in recorder.note("committed \(committed)") })
      }
      return (before, ref)
    }
    task.cancel()
    let (before, ref) = try await task.value
    try await ref.runTransactionBlock { _ in .abort() }
    #expect(
      await recorder.take().filter { !$0.hasPrefix("value") } == ["written true", "committed true"])
    #expect(!before.exists())
    try await ref.setValue(3)
    #expect(await recorder.take() == ["value 3"])
    ref.removeAllObservers()
  }

  @Test(
    "a cancelled wait for a single event ends with nothing, and its listener goes",
    arguments: [false, true])
  func cancelledWait(beforeItBegins: Bool) async throws {
    for type in [DataEventType.childAdded, .childChanged, .childMoved, .childRemoved] {
      let database = Database.inMemory()
      let ref = database.reference().child("place")
      let goesOn = Shared(false)
      let task = Task {
        while beforeItBegins, !Task.isCancelled { await Task.yield() }
        goesOn.withLock { $0 = true }
        return await ref.observeSingleEventAndPreviousSiblingKey(of: type)
      }
      if !beforeItBegins {
        while database.listenedCount == 0 { await Task.yield() }
      }
      task.cancel()
      let (snapshot, previous) = await task.value
      #expect(!snapshot.exists() && snapshot.key == "place" && previous == nil)
      #expect(database.listenedCount == 0)
      try await database.close()
    }
  }

  @Test("a wait that is cancelled while its event comes returns the event or nothing, once")
  func cancelledWithEvent() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("place")
    for _ in 0..<200 {
      let task = Task { await ref.observeSingleEventAndPreviousSiblingKey(of: .childAdded) }
      while database.listenedCount == 0 { await Task.yield() }
      plainly { ref.child("a").setValue(1) }
      task.cancel()
      let (snapshot, _) = await task.value
      #expect(snapshot.key == (snapshot.exists() ? "a" : "place"))
      #expect(database.listenedCount == 0)
      try await ref.removeValue()
    }
  }

  @Test("a wait that is cancelled at any moment leaves no listener")
  func cancelledAnywhere() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("place")
    for round in 0..<2000 {
      let begun = Shared(false)
      let task = Task {
        begun.withLock { $0 = true }
        _ = await ref.observeSingleEventAndPreviousSiblingKey(of: .childAdded)
      }
      await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          // To the moment where it begins soon; where other tests hold the threads, without taking theirs.
          var roundCount = 0
          while !begun.withLock({ $0 }) {
            roundCount += 1
            if roundCount < 1000 { sched_yield() } else { usleep(100) }
          }
          for _ in 0..<round % 40 * 20 { _ = database.listenedCount }
          task.cancel()
          continuation.resume()
        }
      }
      await task.value
      #expect(database.listenedCount == 0)
    }
  }

  // MARK: Forks

  #if canImport(Glibc)
    @Test("a fork is refused every barrier, while its parent goes on")
    func fork() async throws {
      let database = try await Database.open(at: directory.path)
      try await database.reference().setValue(1)
      let copy = directory.path + "-copy"
      // What is done in the child takes no lock that another thread may have held.
      let status = try Self.statusOfFork {
        Self.isRefused { try database.synchronize() }
          && Self.isRefused { try database.checkpoint() }
          && Self.isRefused { try database.backup(to: copy) }
      }
      #expect(status == 0)
      #expect(!FileManager.default.fileExists(atPath: copy))
      try await database.reference().setValue(2)
      try await database.close()
    }

    private static func isRefused(_ body: () throws -> Void) -> Bool {
      do {
        try body()
        return false
      } catch {
        return (error as? DatabaseError)?.code == .ownershipLost
      }
    }

    /// No mutex: see the article on what a fork may not use.
    private final class CallCount: Sendable {
      private let count = Atomic<Int>(0)
      var value: Int { count.load(ordering: .relaxed) }
      func add() { count.add(1, ordering: .relaxed) }
    }

    private struct NoFork: Error {}

    /// Runs `body` in a fork of this process, which then ends at once: with 0 where it returned true.
    private static func statusOfFork(_ body: () -> Bool) throws -> Int32 {
      // Swift hides fork, since little is safe in the child.
      guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork") else {
        throw NoFork()
      }
      let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
      let pid = fork()
      if pid == 0 { _exit(body() ? 0 : 1) }
      guard pid > 0 else { throw NoFork() }
      var status: Int32 = -1
      while waitpid(pid, &status, 0) < 0, errno == EINTR {}
      return status
    }

    @Test(
      "in a fork every write is refused, no block is called, nothing hangs and nothing ends",
      arguments: [
        "plain", "block", "update", "remove", "transaction", "listener", "read", "offline", "id",
        "close",
      ])
    func forkedCalls(call: String) async {
      // In a process of its own, where no other test's thread holds a lock while it forks.
      await #expect(processExitsWith: .success) { [call = call as String] in
        let directory = TemporaryDirectory()
        var options = DatabaseOptions()
        let calls = CallCount()
        options.errorHandler = { _ in calls.add() }
        let database = try await Database.open(at: directory.path, options: options)
        let ref = database.reference().child("a")
        try await ref.setValue(["b": 1])
        let snapshot = try await ref.getData()
        ref.observe(.value) { _ in calls.add() }
        await settle(database)
        let before = calls.value
        let status = try Self.statusOfFork {
          switch call {
          case "plain": for number in 0..<100 { ref.setValue(number) }
          case "block": ref.setValue(2) { _, _ in calls.add() }
          case "update": ref.updateChildValues(["b": 2]) { _, _ in calls.add() }
          case "remove": ref.removeValue()
          case "transaction":
            ref.runTransactionBlock { data in
              calls.add()
              return .success(withValue: data)
            }
          case "listener":
            ref.observe(.childAdded) { _ in calls.add() }
            ref.removeAllObservers()
          case "read": ref.getData { _, _ in calls.add() }
          case "id": ref.childByAutoId().setValue(1)
          case "close": guard Self.isRefused({ try database.close() }) else { return false }
          default:
            database.goOffline()
            database.goOnline()
          }
          // What was read stays readable, places keep their names.
          return shown(snapshot.value) == "{b:1}" && snapshot["b"].int == 1
            && ref.child("x").key == "x" && calls.value == before
            && database.statistics.lastWrite == 0
        }
        #expect(status == 0)
        // The parent has noticed nothing.
        try await ref.setValue(3)
        await settle(database)
        #expect(calls.value == before + 1)
        try await database.close()
        let reopened = try await Database.open(at: directory.path)
        #expect(shown(try await reopened.reference().getData().value) == "{a:3}")
        try await reopened.close()
      }
    }
  #endif
}
