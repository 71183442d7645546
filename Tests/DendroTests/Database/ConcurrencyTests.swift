import Dendro
import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTesting
import Dispatch
import Foundation
import Synchronization
import Testing

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
    // The callback queue releases its references with its last block.
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
    #expect(called.value)
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

  /// The directory is unlocked soon after the release of the last reference, on another thread.
  private func openOnceFree() async throws -> Database {
    while true {
      do {
        return try await Database.open(at: directory.path)
      } catch let error as DatabaseError where error.code == .locked {
        await Task.yield()
      }
    }
  }

  @Test("writes without a completion are written to the disk when their database is released")
  func lastReferenceWrites() async throws {
    for durability: Database.Durability in [.everyCommit, .interval(.seconds(3600)), .onRequest] {
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

  @Test("if the disk refuses them then, the error handler gets the error")
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

  // MARK: Forks

  #if canImport(Glibc)
    @Test("a fork is refused every barrier, while its parent continues")
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

    /// Runs `body` in a fork of this process, which then ends at once: with 0 if it returned true.
    private static func statusOfFork(_ body: () -> Bool) throws -> Int32 {
      // Swift hides fork, since little is safe in the child.
      guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork") else {
        throw NoFork()
      }
      let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
      let pid = fork()
      if pid == 0 {
        // A child that hangs ends by a signal, and its test fails.
        alarm(120)
        _exit(body() ? 0 : 1)
      }
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
        // Swift makes a type when it is first used, under locks of its own that another thread may hold in the
        // moment of the fork: so what the fork shows was shown before.
        #expect(shown(snapshot.value) == "{b:1}" && snapshot["b"].int == 1)
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
