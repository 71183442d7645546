import Dendro
import DendroEngine
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// Who is told what, once, and on which queue: listeners that come and go, queues that are replaced, and
/// the end.
package enum Listeners {
  package static let sweep = Sweep.cases(
    "listeners",
    [
      Case("one that comes between two writes", firstEvents),
      Case("one that another one removes", removed),
      Case("one for one event", single),
      Case("a write around a value that stays", unchanged),
      Case("an update of two places", update),
      Case("what waits when the database is closed", closing),
      Case("the queue is replaced by a listener", queueReplaced),
      Case("the queue is replaced before it comes to its work", staleQueue),
      Case("one that makes work for itself", endlessWork),
      Case("an iterator", iterator),
      Case("an iterator that is cancelled", cancelled),
      Case("server values that a block writes over", serverValues),
    ])

  /// Closes the database, and waits for all that it tells on its queue.
  private static func close(_ database: Database) throws {
    try database.close()
    database.callbackQueue.sync {}
  }

  private static func listen(to reference: DatabaseReference, as name: String, _ told: Told) {
    _ = reference.observe(.value) { told.note("\(name) \($0.value as? Int ?? 0)") }
  }

  private static func problem(_ told: Told, _ expected: [String]) -> String? {
    told.all == expected ? nil : "told \(told.all)"
  }

  // MARK: Who is told

  /// Two listen to the same; the second comes while a write waits to be told to the first.
  @Sendable private static func firstEvents() throws -> String? {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let told = Told()
    listen(to: reference, as: "a", told)
    database.callbackQueue.sync {}
    let gate = database.callbackQueue.standStill()
    reference.setValue(1)
    listen(to: reference, as: "b", told)
    reference.setValue(2)
    gate.signal()
    try close(database)
    return problem(told, ["a 0", "a 1", "b 1", "a 2", "b 2"])
  }

  /// On their own queue nobody can be in the middle of being told.
  @Sendable private static func removed() throws -> String? {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let told = Told()
    let second = Mutex<DatabaseHandle?>(nil)
    _ = reference.observe(.value) { snapshot in
      told.note("a \(snapshot.value as? Int ?? 0)")
      guard snapshot.exists() else { return }
      if let handle = second.withLock({ $0 }) { reference.removeObserver(withHandle: handle) }
    }
    let handle = reference.observe(.value) { told.note("b \($0.value as? Int ?? 0)") }
    second.withLock { $0 = handle }
    database.callbackQueue.sync {}
    for value in 1...2 { reference.setValue(value) }
    try close(database)
    return problem(told, ["a 0", "b 0", "a 1", "a 2"])
  }

  @Sendable private static func single() throws -> String? {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let told = Told()
    reference.observeSingleEvent(of: .childAdded) { told.note($0.key) }
    let gate = database.callbackQueue.standStill()
    reference.setValue(["a": 1, "b": 2])
    reference.child("c").setValue(3)
    gate.signal()
    try close(database)
    return problem(told, ["a"])
  }

  @Sendable private static func unchanged() throws -> String? {
    let database = Database.inMemory()
    let parent = database.reference().child("p")
    let told = Told()
    _ = parent.child("a").observe(.value) { told.note("\($0.exists())") }
    for value in 1...3 {
      parent.setValue(["a": ["x": ["y": 1]], "b": value])
      database.callbackQueue.sync {}
    }
    try close(database)
    return problem(told, ["false", "true"])
  }

  @Sendable private static func update() throws -> String? {
    let database = Database.inMemory()
    let told = Told()
    for name in ["a", "b"] { listen(to: database.reference().child(name), as: name, told) }
    database.reference().updateChildValues(["a": 1, "b": 1])
    try close(database)
    let counts = ["a 1", "b 1"].map { text in told.all.count { $0 == text } }
    return counts == [1, 1] ? nil : "told \(told.all)"
  }

  @Sendable private static func closing() throws -> String? {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let told = Told()
    _ = reference.observe(
      .value, with: { told.note("\($0.value as? Int ?? 0)") },
      withCancel: { error in
        told.note((error as? DatabaseError)?.code == .closed ? "closed" : "\(error)")
      })
    database.callbackQueue.sync {}
    let gate = database.callbackQueue.standStill()
    reference.setValue(1)
    try database.close()
    gate.signal()
    database.callbackQueue.sync {}
    return problem(told, ["0", "1", "closed"])
  }

  // MARK: Queues

  private static let name = DispatchSpecificKey<String>()

  private static func queue(_ name: String) -> DispatchQueue {
    let queue = DispatchQueue(label: "dendro.\(name)")
    queue.setSpecific(key: Self.name, value: name)
    return queue
  }

  /// Whoever comes after the listener that replaced it, be it of the same event, is called on the new one.
  @Sendable private static func queueReplaced() throws -> String? {
    let database = Database.inMemory()
    let (old, new) = (queue("old"), queue("new"))
    database.callbackQueue = old
    let reference = database.reference().child("n")
    let told = Told()
    for number in 1...3 {
      _ = reference.observe(.value) { snapshot in
        guard snapshot.exists() else { return }
        told.note("\(number) \(DispatchQueue.getSpecific(key: name) ?? "none")")
        if number == 1 { database.callbackQueue = new }
      }
    }
    old.sync {}
    reference.setValue(1)
    old.sync {}
    try close(database)
    return problem(told, ["1 old", "2 new", "3 new"])
  }

  @Sendable private static func staleQueue() throws -> String? {
    let database = Database.inMemory()
    let (old, new) = (queue("old"), queue("new"))
    database.callbackQueue = old
    let gates = [old.standStill(), new.standStill()]
    let told = Told()
    _ = database.reference().child("n").observe(.value) { _ in
      told.note(DispatchQueue.getSpecific(key: name) ?? "none")
    }
    database.callbackQueue = new
    gates[0].signal()
    old.sync {}
    gates[1].signal()
    new.sync {}
    try close(database)
    return problem(told, ["new"])
  }

  /// Others that have work on the queue come to it.
  @Sendable private static func endlessWork() throws -> String? {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let hasBegun = Atomic<Bool>(false)
    let isOver = Atomic<Bool>(false)
    let told = Told()
    let queue = database.callbackQueue
    let limit = 10_000
    _ = reference.observe(.value) { snapshot in
      let value = snapshot.value as? Int ?? 0
      if !hasBegun.exchange(true, ordering: .relaxed) {
        queue.async { isOver.store(true, ordering: .relaxed) }
      }
      if isOver.load(ordering: .relaxed) || value == limit { return told.note("\(value)") }
      reference.setValue(value + 1)
    }
    while told.all.isEmpty { usleep(200) }
    try close(database)
    return told.all == ["\(limit)"] ? "told \(limit) times before anybody else was called" : nil
  }

  // MARK: Iterators

  /// Has a task iterate over the values of a place, and waits until it was given the first.
  private static func iterate(_ database: Database, _ told: Told, _ isOver: DispatchSemaphore)
    -> (task: Task<Void, Never>, executor: QueueExecutor)
  {
    let executor = QueueExecutor()
    let reference = database.reference().child("n")
    let task = executor.follow(told, isOver) {
      for try await snapshot in reference.snapshots {
        told.note("\(snapshot.value as? Int ?? 0)")
      }
    }
    return (task, executor)
  }

  @Sendable private static func iterator() throws -> String? {
    let database = Database.inMemory()
    let told = Told()
    let isOver = DispatchSemaphore(value: 0)
    let executor = iterate(database, told, isOver).executor
    for value in 1...3 {
      database.reference().child("n").setValue(value)
      while told.all.count <= value { usleep(200) }
      executor.settle()
    }
    try database.close()
    isOver.wait()
    return problem(told, ["0", "1", "2", "3", "end"])
  }

  @Sendable private static func cancelled() throws -> String? {
    let database = Database.inMemory()
    let told = Told()
    let isOver = DispatchSemaphore(value: 0)
    iterate(database, told, isOver).task.cancel()
    isOver.wait()
    try database.close()
    return problem(told, ["0", "end"])
  }

  // MARK: Server values

  @Sendable private static func serverValues() throws -> String? {
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
    return found == 5 ? nil : "there is \(found as Any)"
  }
}
