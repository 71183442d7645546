import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// What the API reports to an application, and what the application leaves to be written.
package enum Applications {
  package static let scenarios = [
    Scenario("the order of events", eventOrder),
    Scenario("a completion and the events of its write", completionOrder),
    Scenario("a listener that is slow", slowListener),
    Scenario("transactions that are started together", transactions),
    Scenario("transactions that a block starts", waitingTransactions),
    Scenario("what was registered for going offline, offline", offline),
    Scenario("what was registered for going offline, closed", closed),
    Scenario("what was registered for going offline, released", released),
    Scenario("opened again while the last one closes", reopened),
  ]

  /// The values that a listener received.
  private final class Seen: Sendable {
    private let values = Mutex<[Int]>([])

    var all: [Int] { values.withLock { $0 } }

    func note(_ value: Int) { values.withLock { $0.append(value) } }
  }

  private static func listen(to reference: DatabaseReference, _ seen: Seen) {
    _ = reference.observe(.value) { snapshot in
      if let value = snapshot.value as? Int { seen.note(value) }
    }
  }

  /// What has gathered while the queue stood still comes in its order.
  @Sendable private static func eventOrder() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let seen = Seen()
    listen(to: reference, seen)
    let gate = database.callbackQueue.standStill()
    for value in 1...20 { reference.setValue(value) }
    gate.signal()
    try database.close()
    database.callbackQueue.sync {}
    try require(seen.all == Array(1...20), "received \(seen.all)")
  }

  @Sendable private static func completionOrder() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let notes = Mutex<[String]>([])
    let gate = database.callbackQueue.standStill()
    _ = reference.observe(.value) { snapshot in
      if snapshot.exists() { notes.withLock { $0.append("event") } }
    }
    reference.setValue(1) { _, _ in notes.withLock { $0.append("completion") } }
    // Returns after the write in the engine: a completion that came too early has come by now.
    try database.synchronize()
    gate.signal()
    try database.close()
    database.callbackQueue.sync {}
    let order = notes.withLock { $0 }
    try require(order == ["event", "completion"], "\(order)")
  }

  @Sendable private static func slowListener() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let seen = Seen()
    listen(to: reference, seen)
    let gate = database.callbackQueue.standStill()
    for value in 1...1000 { reference.setValue(value) }
    gate.signal()
    try database.close()
    database.callbackQueue.sync {}
    try require(seen.all.count <= 66 && seen.all.last == 1000, "called \(seen.all.count) times")
  }

  @Sendable private static func transactions() throws {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let isDone = DispatchGroup()
    let counters = Counters()
    for _ in 0..<50 {
      isDone.enter()
      reference.runTransactionBlock { data in
        counters.begin()
        Thread.sleep(forTimeInterval: 0.001)
        data.value = (data.value as? Int ?? 0) + 1
        counters.end()
        return .success(withValue: data)
      } andCompletionBlock: { _, _, _ in
        isDone.leave()
      }
    }
    isDone.wait()
    let value = database.engine?.integer(at: "n")
    try database.close()
    try require(
      counters.most == 1 && value == 50, "\(counters.most) ran at once, and there is \(value ?? 0)")
  }

  @Sendable private static func waitingTransactions() throws {
    let database = Database.inMemory()
    let reference = database.reference()
    let counter = Counters()
    let isDone = DispatchGroup()
    isDone.enter()
    let limit = 16_384
    reference.child("n").runTransactionBlock { data in
      for _ in 0..<limit + 10 {
        isDone.enter()
        reference.child("own").runTransactionBlock { _ in
          .abort()
        } andCompletionBlock: { error, _, _ in
          if (error as? DatabaseError)?.code == .unavailable { counter.begin() }
          isDone.leave()
        }
      }
      return .abort()
    } andCompletionBlock: { _, _, _ in
      isDone.leave()
    }
    isDone.wait()
    try database.close()
    try require(counter.most == 10, "\(counter.most) were refused")
  }

  private final class Counters: Sendable {
    private let state = Mutex((running: 0, most: 0))

    var most: Int { state.withLock { $0.most } }

    func begin() {
      state.withLock { state in
        state.running += 1
        state.most = max(state.most, state.running)
      }
    }

    func end() { state.withLock { $0.running -= 1 } }
  }

  // MARK: Going offline

  private static func open(_ disk: SimulatedDisk) throws(DatabaseError) -> Database {
    try open(disk.environment)
  }

  private static func open(_ disk: InterposedDisk) throws(DatabaseError) -> Database {
    try open(disk.environment)
  }

  private static func open(_ environment: DendroStorage.Environment) throws(DatabaseError)
    -> Database
  {
    try Database.open(
      at: EngineRecording.directory, options: DatabaseOptions(), environment: environment,
      mode: .readWrite)
  }

  /// What the next opener finds.
  private static func requireOne(_ disk: SimulatedDisk) throws {
    let value = try openOnceFree(disk).integer(at: "a")
    try require(value == 1, "there is \(value as Any)")
  }

  @Sendable private static func offline() throws {
    let disk = SimulatedDisk(seed: 1)
    let database = try open(disk)
    database.reference().child("a").onDisconnectSetValue(1)
    database.goOffline()
    let value = database.engine?.integer(at: "a")
    try database.close()
    try require(value == 1, "there is \(value as Any)")
    try requireOne(disk)
  }

  @Sendable private static func closed() throws {
    let disk = SimulatedDisk(seed: 1)
    let database = try open(disk)
    database.reference().child("a").onDisconnectSetValue(1)
    try database.close()
    try requireOne(disk)
  }

  @Sendable private static func released() throws {
    let disk = SimulatedDisk(seed: 1)
    func use() throws { try open(disk).reference().child("a").onDisconnectSetValue(1) }
    try use()
    try requireOne(disk)
  }

  /// The directory is locked when it is opened, and free once it is asked by whom.
  @Sendable private static func reopened() throws {
    let disk = SimulatedDisk(seed: 1)
    let closing = InterposedDisk(disk)
    let opening = InterposedDisk(disk)
    let isRefused = DispatchSemaphore(value: 0)
    func use() throws {
      let database = try open(closing)
      closing.interpose(before: .synchronize, on: ".log") { isRefused.wait() }
      database.reference().child("a").setValue(1)
    }
    try use()
    opening.interpose(before: .read, on: "dendro.lock") {
      isRefused.signal()
      let lock = try? disk.open(EngineRecording.directory + "/dendro.lock", .readWrite)
      while let lock, (try? lock.lock(.exclusive)) != true { usleep(1_000) }
    }
    let database = try open(opening)
    let value = database.engine?.integer(at: "a")
    try database.close()
    try require(value == 1, "there is \(value as Any)")
  }
}
