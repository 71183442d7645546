import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// What an application is told by the API, and what it leaves to be written.
package enum Applications {
  package static let sweep = Sweep.cases(
    "application",
    [
      Case("the order of events", eventOrder),
      Case("a completion and the events of its write", completionOrder),
      Case("a listener that is slow", slowListener),
      Case("transactions that are started together", transactions),
      Case("transactions that a block starts", waitingTransactions),
      Case("what was registered for going offline, offline", offline),
      Case("what was registered for going offline, closed", closed),
      Case("what was registered for going offline, released", released),
    ])

  /// Values as a listener was told them.
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
  @Sendable private static func eventOrder() throws -> String? {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let seen = Seen()
    listen(to: reference, seen)
    let gate = database.callbackQueue.standStill()
    for value in 1...20 { reference.setValue(value) }
    gate.signal()
    try database.close()
    database.callbackQueue.sync {}
    return seen.all == Array(1...20) ? nil : "told \(seen.all)"
  }

  @Sendable private static func completionOrder() throws -> String? {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let told = Mutex<[String]>([])
    let gate = database.callbackQueue.standStill()
    _ = reference.observe(.value) { snapshot in
      if snapshot.exists() { told.withLock { $0.append("event") } }
    }
    reference.setValue(1) { _, _ in told.withLock { $0.append("completion") } }
    // Behind it in the engine: whoever would tell too early has told.
    try database.synchronize()
    gate.signal()
    try database.close()
    database.callbackQueue.sync {}
    let order = told.withLock { $0 }
    return order == ["event", "completion"] ? nil : "\(order)"
  }

  @Sendable private static func slowListener() throws -> String? {
    let database = Database.inMemory()
    let reference = database.reference().child("n")
    let seen = Seen()
    listen(to: reference, seen)
    let gate = database.callbackQueue.standStill()
    for value in 1...1000 { reference.setValue(value) }
    gate.signal()
    try database.close()
    database.callbackQueue.sync {}
    return seen.all.count <= 66 && seen.all.last == 1000 ? nil : "told \(seen.all.count) times"
  }

  @Sendable private static func transactions() throws -> String? {
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
    return counters.most == 1 && value == 50
      ? nil : "\(counters.most) ran at once, and there is \(value ?? 0)"
  }

  @Sendable private static func waitingTransactions() throws -> String? {
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
    return counter.most == 10 ? nil : "\(counter.most) were refused"
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
    try Database.open(
      at: EngineRecording.directory, options: DatabaseOptions(), environment: disk.environment,
      mode: .readWrite)
  }

  /// What the next opener finds, once the directory is let go.
  private static func found(_ disk: SimulatedDisk) throws -> String? {
    for _ in 0..<1000 {
      do throws(EngineError) {
        let value = try EngineRecording.open(disk).integer(at: "a")
        return value == 1 ? nil : "there is \(value as Any)"
      } catch {
        guard case .storage(.locked) = error else { return "refused as \(error)" }
        Thread.sleep(forTimeInterval: 0.01)
      }
    }
    return "the directory is still locked"
  }

  @Sendable private static func offline() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let database = try open(disk)
    database.reference().child("a").onDisconnectSetValue(1)
    database.goOffline()
    let value = database.engine?.integer(at: "a")
    try database.close()
    return value == 1 ? try found(disk) : "there is \(value as Any)"
  }

  @Sendable private static func closed() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let database = try open(disk)
    database.reference().child("a").onDisconnectSetValue(1)
    try database.close()
    return try found(disk)
  }

  @Sendable private static func released() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    func use() throws { try open(disk).reference().child("a").onDisconnectSetValue(1) }
    try use()
    return try found(disk)
  }
}
