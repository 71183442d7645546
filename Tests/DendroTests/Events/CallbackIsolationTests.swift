import Dendro
import Dispatch
import Testing

/// Where a block is called: on the actor in whose code it is written, else on the callback queue.
@Suite("Blocks and actors")
struct CallbackIsolationTests {
  /// An object of the user interface, as the guides' samples have them.
  @MainActor
  final class Controller {
    let database: Database
    var ref: DatabaseReference { database.reference() }
    var lines: [String] = []

    init(_ database: Database) { self.database = database }

    func start(_ done: @escaping @Sendable () -> Void) {
      ref.child("a").observe(.value) { snapshot in
        MainActor.assertIsolated()
        self.lines.append("value \(snapshot.int ?? 0)")
      }
      ref.observe(
        .childAdded,
        andPreviousSiblingKeyWith: { snapshot, previous in
          self.lines.append("added \(snapshot.key) after \(previous ?? "nil")")
        })
      ref.child("b.c").observe(
        .value, with: { _ in self.lines.append("never") },
        withCancel: { _ in self.lines.append("cancelled") })
      ref.child("a").setValue(2) { error, ref in
        MainActor.assertIsolated()
        self.lines.append("set \(ref.key ?? "") \(error == nil)")
      }
      ref.child("a").getData { error, snapshot in
        self.lines.append("read \(snapshot.int ?? 0)")
      }
      ref.child("a").runTransactionBlock { data in
        data.value = (data.value as? Int ?? 0) + 1
        return .success(withValue: data)
      } andCompletionBlock: { error, committed, snapshot in
        self.lines.append("transaction \(committed) \(snapshot?.int ?? 0)")
        done()
      }
    }
  }

  @Test("blocks written on the main actor are called there, in the order of all callbacks")
  @MainActor
  func mainActor() async throws {
    let database = Database.inMemory()
    try await database.reference().child("a").setValue(1)
    let controller = Controller(database)
    await withCheckedContinuation { continuation in controller.start { continuation.resume() } }
    // The write is acknowledged, and the read answered, at moments of their own.
    let unordered: Set = ["set a true", "read 2"]
    #expect(
      controller.lines.filter { !unordered.contains($0) } == [
        "value 1", "added a after nil", "cancelled", "value 2", "value 3", "transaction true 3",
      ])
    #expect(controller.lines.filter { unordered.contains($0) }.count == 2)
    controller.ref.removeAllObservers()
    controller.ref.child("a").removeAllObservers()
  }

  actor Counter {
    let ref: DatabaseReference
    private(set) var values: [Int] = []
    private var handle: DatabaseHandle?

    init(_ ref: DatabaseReference) { self.ref = ref }

    func start() {
      handle = ref.observe(.value) { snapshot in
        self.assertIsolated()
        self.values.append(snapshot.int ?? 0)
      }
    }

    /// Whether the block was called once it had been removed.
    func stop() async -> Bool {
      if let handle { ref.removeObserver(withHandle: handle) }
      let count = values.count
      for _ in 0..<100 { await Task.yield() }
      return values.count != count
    }
  }

  @Test(
    "a block that captures an actor is called on it, and not again once the actor has removed it")
  func actors() async throws {
    let database = Database.inMemory()
    let ref = database.reference()
    let counters = (0..<3).map { _ in Counter(ref) }
    for counter in counters { await counter.start() }
    for number in 1...200 { try await ref.setValue(number) }
    await settle(database)
    for counter in counters {
      let values = await counter.values
      #expect(values.last == 200 && values == values.sorted() && Set(values).count == values.count)
    }
    let writer = Task { for number in 201...400 { try await ref.setValue(number) } }
    for counter in counters { #expect(await counter.stop() == false) }
    try await writer.value
  }

  @Test("a block that belongs to no actor is called on the callback queue")
  func callbackQueue() async throws {
    let database = Database.inMemory()
    let key = DispatchSpecificKey<Bool>()
    let queue = DispatchQueue(label: "callbacks")
    queue.setSpecific(key: key, value: true)
    database.callbackQueue = queue
    let isThere = await withCheckedContinuation { continuation in
      database.reference().observeSingleEvent(of: .value) { _ in
        continuation.resume(returning: DispatchQueue.getSpecific(key: key))
      }
    }
    #expect(isThere == true)
  }

  @Test("a main actor that is busy holds up the blocks behind its own, and loses none")
  @MainActor
  func busy() async throws {
    let database = Database.inMemory()
    let lines = Shared<[String]>([])
    let ref = database.reference()
    nonisolated func listenElsewhere() {
      for number in 0..<3 {
        ref.observe(.value) { snapshot in
          lines.withLock { $0.append("queue \(number) \(snapshot.int ?? 0)") }
        }
      }
    }
    ref.observe(.value) { snapshot in
      MainActor.assertIsolated()
      lines.withLock { $0.append("main \(snapshot.int ?? 0)") }
    }
    listenElsewhere()
    plainly { for number in 1...3 { ref.setValue(number) } }
    await settle(database)
    let expected = (0...3).flatMap { value in
      ["main \(value)"] + (0..<3).map { "queue \($0) \(value)" }
    }
    // The first events are those of the moment when each listener's turn comes.
    #expect(Array(lines.value.suffix(12)) == Array(expected.suffix(12)))
    ref.removeAllObservers()
  }
}
