import DendroEngine
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation

@testable import Dendro

/// A hundred and some calls that write, of every form that the API has. Each is synchronized by itself.
struct DatabaseScript {
  private let callCount = 160
  private var generator: WriteGenerator
  private var values: ValueGenerator

  init(seed: UInt64) {
    generator = WriteGenerator(seed: seed &+ 1000)
    generator.stringByteCountMax = [12, 300][Int(seed % 2)]
    values = ValueGenerator(seed: seed)
  }

  func run(on disk: SimulatedDisk) async throws {
    var script = self
    let database = try Database.open(at: "/db", on: disk)
    for _ in 0..<script.callCount {
      try script.call(database.reference())
      disk.clock.set(to: disk.clock.now() + Int64(script.values.random.below(90)))
      try await database.synchronize()
    }
    try await database.close()
  }

  private mutating func place(_ root: DatabaseReference) -> DatabaseReference {
    root.child(values.path(keyCountMax: 3))
  }

  private mutating func call(_ root: DatabaseReference) throws {
    let place = place(root)
    switch values.random.below(20) {
    case 0: place.setValue(values.text())
    case 1: place.setValue(values.random.below(100_000))
    case 2: place.setValue(Double(values.random.below(1000)) / 8)
    case 3: place.setValue(values.random.oneIn(2))
    case 4, 5, 6: place.setValue(values.value(depth: 0))
    case 7: place.setValue(values.value(depth: 0), andPriority: values.random.below(5))
    case 8: place.setValue(ServerValue.increment(NSNumber(value: values.random.below(9))))
    case 9: place.increment(by: Double(values.random.below(9)) / 2)
    case 10: place.removeValue()
    case 11: place.setPriority(values.random.oneIn(2) ? "p" : ServerValue.timestamp())
    case 12, 13: place.updateChildValues(values.update())
    case 14:
      var update: [AnyHashable: Any] = [:]
      for (key, value) in values.update() { update[key] = value }
      place.updateChildValues(update)
    case 15: block(place)
    case 16: try place.setValue(from: values.record())
    case 17: try transact(place)
    case 18: submit(json: values.json(), to: root)
    default: place.setValue(NSNull())
    }
  }

  private mutating func block(_ place: DatabaseReference) {
    place.update { update in
      var keys = Set<String>()
      for _ in 0..<values.random.below(12) {
        let key = values.path(keyCountMax: 1)
        guard keys.insert(key).inserted else { continue }
        switch values.random.below(6) {
        case 0: update.increment(key, by: values.random.below(50))
        case 1: update.remove(key)
        case 2: update.set(key, values.plainValue(depth: 1))
        case 3: update.set(key + "/x", values.random.below(50))
        default: update.set(key, values.text())
        }
      }
    }
  }

  private mutating func transact(_ place: DatabaseReference) throws {
    let isEnded = DispatchSemaphore(value: 0)
    let value = SendableBox(values.value(depth: 1))
    let replaces = values.random.oneIn(2)
    place.runTransactionBlock(
      { data in
        if replaces || !(data.value is [String: Any]) {
          data.value = value.content
        } else {
          data.childData(byAppendingPath: "seen").value = ServerValue.timestamp()
          data.childData(byAppendingPath: "count").value = ServerValue.increment(1)
        }
        return .success(withValue: data)
      }, andCompletionBlock: { _, _, _ in isEnded.signal() }, withLocalEvents: true)
    isEnded.wait()
  }

  /// As the server does.
  private mutating func submit(json: String, to root: DatabaseReference) {
    var json = json
    let path = generator.path(maxCount: 3)
    json.withUTF8 { bytes in
      let bytes = UnsafeRawBufferPointer(bytes)
      guard let engine = try? root.database.usable(),
        let draft = try? JSONParser.parseDraft(setting: bytes, at: path)
      else { return }
      engine.submit(draft, completion: nil)
    }
  }
}

/// A value on its way into a block that is called while the caller waits.
private struct SendableBox: @unchecked Sendable {
  let content: Any
  init(_ content: Any) { self.content = content }
}
