import Dendro
import DendroEngine
import DendroTestSupport
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// Which listener is called with what, how often and on which queue: listeners that come and go, queues that
/// are replaced, and closing.
package enum Listeners {
  package static let scenarios = [
    Scenario("one that comes between two writes", firstEvents),
    Scenario("one that another one removes", removed),
    Scenario("one for one event", single),
    Scenario("a write around a value that stays", unchanged),
    Scenario("an update of two places", update),
    Scenario("what waits when the database is closed", closing),
    Scenario("the queue is replaced by a listener", queueReplaced),
    Scenario("the queue is replaced before it comes to its work", staleQueue),
    Scenario("one that makes work for itself", endlessWork),
    Scenario("an iterator", iterator),
    Scenario("an iterator that is cancelled", cancelled),
    Scenario("server values that a block writes over", serverValues),
  ]

  /// Closes the database, and waits for all callbacks on its queue.
  private static func close(_ database: Database) throws {
    try database.close()
    database.callbackQueue.sync {}
  }

  private static func listen(to reference: DatabaseReference, as name: String, _ notes: Notes) {
    _ = reference.observe(.value) { notes.note("\(name) \($0.value as? Int ?? 0)") }
  }

  // MARK: Events

  /// Two listen to the same place; the second is added while the first still has an event to come.
  @Sendable private static func firstEvents() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let notes = Notes()
    listen(to: reference, as: "a", notes)
    database.callbackQueue.sync {}
    let gate = database.callbackQueue.standStill()
    reference.setValue(1)
    listen(to: reference, as: "b", notes)
    reference.setValue(2)
    gate.signal()
    try close(database)
    try notes.require(["a 0", "a 1", "b 1", "a 2", "b 2"])
  }

  /// A listener that is removed on the callback queue is never called again.
  @Sendable private static func removed() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let notes = Notes()
    let second = Mutex<DatabaseHandle?>(nil)
    _ = reference.observe(.value) { snapshot in
      notes.note("a \(snapshot.value as? Int ?? 0)")
      guard snapshot.exists() else { return }
      if let handle = second.withLock({ $0 }) { reference.removeObserver(withHandle: handle) }
    }
    let handle = reference.observe(.value) { notes.note("b \($0.value as? Int ?? 0)") }
    second.withLock { $0 = handle }
    database.callbackQueue.sync {}
    for value in 1...2 { reference.setValue(value) }
    try close(database)
    try notes.require(["a 0", "b 0", "a 1", "a 2"])
  }

  @Sendable private static func single() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let notes = Notes()
    reference.observeSingleEvent(of: .childAdded) { notes.note($0.key) }
    let gate = database.callbackQueue.standStill()
    reference.setValue(["a": 1, "b": 2])
    reference.child("c").setValue(3)
    gate.signal()
    try close(database)
    try notes.require(["a"])
  }

  @Sendable private static func unchanged() throws {
    let database = Database.inMemory()
    let parent = database.reference().child("p")
    let notes = Notes()
    _ = parent.child("a").observe(.value) { notes.note("\($0.exists())") }
    for value in 1...3 {
      parent.setValue(["a": ["x": ["y": 1]], "b": value])
      database.callbackQueue.sync {}
    }
    try close(database)
    try notes.require(["false", "true"])
  }

  @Sendable private static func update() throws {
    let database = Database.inMemory()
    let notes = Notes()
    for name in ["a", "b"] { listen(to: database.reference().child(name), as: name, notes) }
    database.reference().updateChildValues(["a": 1, "b": 1])
    try close(database)
    let counts = ["a 1", "b 1"].map { text in notes.all.count { $0 == text } }
    try require(counts == [1, 1], "noted \(notes.all)")
  }

  @Sendable private static func closing() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let notes = Notes()
    _ = reference.observe(
      .value, with: { notes.note("\($0.value as? Int ?? 0)") },
      withCancel: { error in
        notes.note((error as? DatabaseError)?.code == .closed ? "closed" : "\(error)")
      })
    database.callbackQueue.sync {}
    let gate = database.callbackQueue.standStill()
    reference.setValue(1)
    try database.close()
    gate.signal()
    database.callbackQueue.sync {}
    try notes.require(["0", "1", "closed"])
  }

  // MARK: Queues

  private static let name = DispatchSpecificKey<String>()

  private static func queue(_ name: String) -> DispatchQueue {
    let queue = DispatchQueue(label: "dendro.\(name)")
    queue.setSpecific(key: Self.name, value: name)
    return queue
  }

  /// Listeners after the one that replaced the queue are called on the new one, even for the same event.
  @Sendable private static func queueReplaced() throws {
    let database = Database.inMemory()
    let (old, new) = (queue("old"), queue("new"))
    database.callbackQueue = old
    let reference = database.reference().child("n")
    let notes = Notes()
    for number in 1...3 {
      _ = reference.observe(.value) { snapshot in
        guard snapshot.exists() else { return }
        notes.note("\(number) \(DispatchQueue.getSpecific(key: name) ?? "none")")
        if number == 1 { database.callbackQueue = new }
      }
    }
    old.sync {}
    reference.setValue(1)
    old.sync {}
    try close(database)
    try notes.require(["1 old", "2 new", "3 new"])
  }

  @Sendable private static func staleQueue() throws {
    let database = Database.inMemory()
    let (old, new) = (queue("old"), queue("new"))
    database.callbackQueue = old
    let gates = [old.standStill(), new.standStill()]
    let notes = Notes()
    _ = database.reference().child("n").observe(.value) { _ in
      notes.note(DispatchQueue.getSpecific(key: name) ?? "none")
    }
    database.callbackQueue = new
    gates[0].signal()
    old.sync {}
    gates[1].signal()
    new.sync {}
    try close(database)
    try notes.require(["new"])
  }

  /// Other work on the queue gets its turn.
  @Sendable private static func endlessWork() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let hasBegun = Atomic<Bool>(false)
    let isOver = Atomic<Bool>(false)
    let notes = Notes()
    let queue = database.callbackQueue
    let limit = 10_000
    _ = reference.observe(.value) { snapshot in
      let value = snapshot.value as? Int ?? 0
      if !hasBegun.exchange(true, ordering: .relaxed) {
        queue.async { isOver.store(true, ordering: .relaxed) }
      }
      if isOver.load(ordering: .relaxed) || value == limit { return notes.note("\(value)") }
      reference.setValue(value + 1)
    }
    while notes.all.isEmpty { usleep(200) }
    try close(database)
    try require(notes.all != ["\(limit)"], "called \(limit) times before any other work ran")
  }

  // MARK: Iterators

  /// Iterates over the values of a place in a task, and waits for the first.
  private static func iterate(_ database: Database, _ notes: Notes, _ isOver: DispatchSemaphore)
    -> (task: Task<Void, Never>, executor: QueueExecutor)
  {
    let executor = QueueExecutor()
    let reference = database.reference().child("n")
    let task = executor.follow(notes, isOver) {
      for try await snapshot in reference.snapshots {
        notes.note("\(snapshot.value as? Int ?? 0)")
      }
    }
    return (task, executor)
  }

  @Sendable private static func iterator() throws {
    let database = Database.inMemory()
    let notes = Notes()
    let isOver = DispatchSemaphore(value: 0)
    let executor = iterate(database, notes, isOver).executor
    for value in 1...3 {
      database.reference().child("n").setValue(value)
      while notes.all.count <= value { usleep(200) }
      executor.settle()
    }
    try database.close()
    isOver.wait()
    try notes.require(["0", "1", "2", "3", "end"])
  }

  @Sendable private static func cancelled() throws {
    let database = Database.inMemory()
    let notes = Notes()
    let isOver = DispatchSemaphore(value: 0)
    iterate(database, notes, isOver).task.cancel()
    isOver.wait()
    try database.close()
    try notes.require(["0", "end"])
  }

  // MARK: Server values

  @Sendable private static func serverValues() throws {
    let database = Database.inMemory()
    let isDone = DispatchSemaphore(value: 0)
    database.reference().child("p").runTransactionBlock { data in
      let child = data.childData(byAppendingPath: "a")
      child.value = ServerValue.timestamp()
      child.value = 5
      return .success(withValue: data)
    } andCompletionBlock: { _, _, _ in
      isDone.signal()
    }
    isDone.wait()
    let found = database.engine?.integer(at: "p/a")
    try database.close()
    try require(found == 5, "there is \(found as Any)")
  }
}
