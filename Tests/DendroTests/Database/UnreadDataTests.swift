import Dendro
import DendroEngine
import DendroTestSupport
import DendroTesting
import Foundation
import Synchronization
import Testing

/// Data that was not read since the database was opened: on which threads it is read, and what happens meanwhile.
@Suite("Data that was not read yet", .timeLimit(.minutes(5)))
struct UnreadDataTests {
  private static func open(_ disk: HeldDisk) throws -> Database {
    try Database.open(
      at: "/db", options: DatabaseOptions(), environment: disk.environment, mode: .readWrite)
  }

  fileprivate static let postCount = 3_000

  /// A disk with a closed database of so many posts that its checkpoint has several chunks. The first posts are in the
  /// first chunk, which opening does not read.
  private static func disk() async throws -> HeldDisk {
    let disk = HeldDisk()
    let database = try open(disk)
    let posts = database.reference(withPath: "blog/posts")
    for group in 0..<postCount / 100 {
      try await posts.update { update in
        for number in 0..<100 {
          let key = "p\(group * 100 + number)"
          update.set("\(key)/title", "The title of post \(key), \(UUID().uuidString)")
          update.set("\(key)/stars", number)
        }
      }
    }
    try await database.checkpoint()
    try await database.close()
    return disk
  }

  /// Notes which threads read a checkpoint of a disk.
  private final class Readers: Sendable {
    struct Reader: Sendable {
      /// Whether it is a thread of a queue that has the mark.
      var isMarked: Bool
      /// Only compared.
      nonisolated(unsafe) var thread: Thread
    }

    /// Marks the queue of an actor.
    static let mark = DispatchSpecificKey<Bool>()
    private let noted = Mutex<[Reader]>([])

    init(of disk: HeldDisk) {
      disk.onRead { [self] in
        let isMarked = DispatchQueue.getSpecific(key: Self.mark) ?? false
        noted.withLock { $0.append(Reader(isMarked: isMarked, thread: .current)) }
      }
    }

    /// Those since the last call, once for each reading.
    func take() -> [Reader] {
      noted.withLock { noted in
        defer { noted = [] }
        return noted
      }
    }
  }

  /// `body` on a thread of its own; whether that thread has read a checkpoint.
  private static func reads(
    _ disk: HeldDisk, _ body: @escaping @Sendable () -> Void
  ) async -> Bool {
    let readers = Readers(of: disk)
    return await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        body()
        let reads = readers.take().contains { $0.thread === Thread.current }
        continuation.resume(returning: reads)
      }
    }
  }

  /// Waits for values, without asking for the time.
  private final class Values: Sendable {
    private let stream: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func add(_ value: String) { continuation.yield(value) }

    func next(_ count: Int) async -> [String] {
      var values: [String] = []
      if count == 0 { return [] }
      for await value in stream {
        values.append(value)
        if values.count == count { break }
      }
      return values
    }
  }

  @Test("the thread of a call that returns at once reads nothing")
  func callers() async throws {
    let disk = try await Self.disk()
    for kind in 0..<6 {
      let database = try Self.open(disk)
      let values = Values()
      let posts = database.reference(withPath: "blog/posts")
      // Each in a database of which nothing was read.
      let hasRead = await Self.reads(disk) {
        switch kind {
        case 0:
          posts.queryOrderedByKey().queryLimited(toLast: 1).observe(.value) {
            values.add("\($0.childrenCount)")
          }
        case 1:
          posts.queryLimited(toLast: 1).observe(.childAdded) { values.add($0.key) }
        case 2:
          posts.observeSingleEvent(of: .value) { values.add("\($0.childrenCount)") }
        case 3:
          posts.child("p1/stars").observe(.value) { values.add("\($0.value ?? 0)") }
        case 4: posts.child("p1/stars").getData { values.add("\($1.value ?? 0) \($0 == nil)") }
        default:
          posts.queryOrdered(byChild: "stars").queryLimited(toLast: 2).getData {
            values.add("\($1.childrenCount) \($0 == nil)")
          }
        }
      }
      #expect(!hasRead, "kind \(kind)")
      let expected = ["1", "p999", "\(Self.postCount)", "1", "1 true", "2 true"]
      #expect(await values.next(1) == [expected[kind]])
      posts.removeAllObservers()
      posts.child("p1/stars").removeAllObservers()
      try await database.close()
    }
  }

  /// An actor whose jobs run on a queue with the mark of `Readers`.
  private actor Caller {
    private final class Executor: SerialExecutor {
      let queue = DispatchQueue(label: "caller")

      init() { queue.setSpecific(key: Readers.mark, value: true) }

      func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
      }
    }

    private let executor = Executor()
    nonisolated var unownedExecutor: UnownedSerialExecutor {
      executor.asUnownedSerialExecutor()
    }

    func read(_ kind: Int, _ posts: DatabaseReference) async throws {
      #expect(DispatchQueue.getSpecific(key: Readers.mark) == true)
      switch kind {
      case 0: #expect(try await posts.child("p1/stars").getData().value as? Int == 1)
      case 1: #expect(try await posts.getData().childrenCount == UInt(UnreadDataTests.postCount))
      case 2:
        let first = posts.queryOrderedByKey().queryLimited(toFirst: 1)
        #expect(try await first.getData().childrenCount == 1)
      case 3:
        for try await snapshot in posts.child("p1").snapshots {
          #expect(snapshot.childrenCount == 2)
          break
        }
      default:
        let (snapshot, _) = await posts.observeSingleEventAndPreviousSiblingKey(of: .value)
        #expect(snapshot.childrenCount == UInt(UnreadDataTests.postCount))
      }
    }
  }

  @Test("what is awaited is not read on the caller's actor", arguments: 0..<5)
  func actors(kind: Int) async throws {
    let disk = try await Self.disk()
    let database = try Self.open(disk)
    let noted = Readers(of: disk)
    try await Caller().read(kind, database.reference(withPath: "blog/posts"))
    let readers = noted.take()
    #expect(!readers.isEmpty && !readers.contains { $0.isMarked })
    try await database.close()
  }

  @Test("a listener whose data is read first gets it, and every write since its call")
  func writesMeanwhile() async throws {
    let disk = try await Self.disk()
    let database = try Self.open(disk)
    let posts = database.reference(withPath: "blog/posts")
    // So that the writes below have nothing to read.
    _ = try await posts.child("zzz").getData()
    let other = Values()
    let handle = database.reference(withPath: "other").observe(.value) {
      other.add("\($0.value ?? "")")
    }
    _ = await other.next(1)
    disk.hold(.readCheckpoint)
    let values = Values()
    let removed = Values()
    posts.observe(.value) { values.add("\($0.childrenCount)") }
    posts.observe(.childAdded) { if $0.key == "new" { values.add("added") } }
    let unwanted = posts.observe(.value) { _ in removed.add("called") }
    disk.waitForCall()
    posts.removeObserver(withHandle: unwanted)
    try await posts.setValue(["new": 1, "newer": 2])
    posts.observe(.value) { values.add("later \($0.childrenCount)") }
    // The events of other listeners and completions do not wait.
    try await database.reference(withPath: "other").setValue(5)
    #expect(await other.next(1) == ["5"])
    disk.release()
    #expect(
      await values.next(4) == ["\(Self.postCount)", "added", "2", "later 2"])
    removed.add("end")
    #expect(await removed.next(1) == ["end"])
    database.reference(withPath: "other").removeObserver(withHandle: handle)
    posts.removeAllObservers()
    try await database.close()
  }

  @Test("a listener whose data is being read when the database is closed gets it, and then the end")
  func closedMeanwhile() async throws {
    let disk = try await Self.disk()
    let database = try Self.open(disk)
    let posts = database.reference(withPath: "blog/posts")
    disk.hold(.readCheckpoint)
    let values = Values()
    posts.observe(.value) {
      values.add("\($0.childrenCount)")
    } withCancel: { error in
      values.add("\((error as? DatabaseError)?.code == .closed)")
    }
    disk.waitForCall()
    try await database.close()
    disk.release()
    #expect(await values.next(2) == ["\(Self.postCount)", "true"])
  }

  @Test(
    "a listener whose data was read before the callback queue came to the close gets it, and then the end",
    arguments: [false, true])
  func closedBefore(isSingle: Bool) async throws {
    let disk = try await Self.disk()
    let database = try Self.open(disk)
    let posts = database.reference(withPath: "blog/posts")
    let queue = DispatchQueue(label: "callbacks")
    database.callbackQueue = queue
    disk.hold(.readCheckpoint)
    let values = Values()
    if isSingle {
      posts.queryOrdered(byChild: "stars").queryLimited(toLast: 1).observeSingleEvent(of: .value) {
        values.add("\($0.childrenCount)")
      }
    } else {
      posts.observe(.value) {
        values.add("\($0.childrenCount)")
      } withCancel: { error in
        values.add("\((error as? DatabaseError)?.code == .closed)")
      }
    }
    disk.waitForCall()
    queue.suspend()
    try await database.close()
    let count = database.waitingWorkCount
    disk.release()
    // What was read waits behind the close, which the queue has not come to yet.
    while database.waitingWorkCount == count { await Task.yield() }
    queue.resume()
    let expected = isSingle ? ["1"] : ["\(Self.postCount)", "true"]
    #expect(await values.next(expected.count) == expected)
  }

  @Test("a listener whose data cannot be read gets the error, and another one can follow")
  func unreadable() async throws {
    let disk = try await Self.disk()
    let database = try Self.open(disk)
    let posts = database.reference(withPath: "blog/posts")
    disk.disk.inject(Self.unreadableCheckpoint)
    let values = Values()
    for _ in 0..<2 {
      posts.observe(.value) { _ in
        values.add("called")
      } withCancel: { error in
        values.add("\((error as? DatabaseError)?.code == .inputOutput)")
      }
    }
    #expect(await values.next(2) == ["true", "true"])
    disk.disk.removeFaults()
    posts.observe(.value) { values.add("\($0.childrenCount)") }
    #expect(await values.next(1) == ["\(Self.postCount)"])
    posts.removeAllObservers()
    try await database.close()
  }

  private static let unreadableCheckpoint = DiskFault(
    .error(EIO), of: [.read], at: 1, isPermanent: true, pathPart: ".checkpoint")

  @Test(
    "what an undo brings back was not read: listeners get all of it, or the error",
    arguments: [false, true])
  func undo(isReadable: Bool) async throws {
    let disk = try await Self.disk()
    let database = try Self.open(disk)
    let posts = database.reference(withPath: "blog/posts")
    disk.hold(.synchronizeLog)
    let values = Values()
    posts.removeValue { error, _ in values.add("refused \(error != nil)") }
    posts.observe(.value) {
      values.add("\($0.childrenCount)")
    } withCancel: { error in
      values.add("\((error as? DatabaseError)?.code == .inputOutput)")
    }
    // It sees what no disk has confirmed.
    #expect(await values.next(1) == ["0"])
    disk.waitForCall()
    disk.disk.inject(
      DiskFault(.error(EIO), of: [.synchronize], at: 1, isPermanent: true, pathPart: ".log"))
    if !isReadable { disk.disk.inject(Self.unreadableCheckpoint) }
    disk.release()
    #expect(
      await values.next(2).sorted()
        == (isReadable ? ["\(Self.postCount)", "refused true"] : ["refused true", "true"]))
    posts.removeAllObservers()
    try? await database.close()
  }
}
