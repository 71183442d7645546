import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTestSupport
import Testing

/// Timestamps among other values: where they are to be filled in follows what is written over them,
/// above and below.
@Suite("Places of server values")
struct ServerValuePlacesTests {
  private static let time = 1_000

  /// What is done at a place; with the time itself instead of a timestamp it must lead to the same.
  private enum Change {
    case scalar(Int)
    case time
    case tree
    case removal
    case priority(Int)
    case timePriority
    case timeWithPriority
  }

  private static func changes(_ seed: UInt64) -> [(path: String, change: Change)] {
    var random = SeededGenerator(seed: seed)
    // Few keys, so that branches are emptied and made again.
    let keys = seed.isMultiple(of: 2) ? ["a", "b", "0", "1"] : ["a", "b"]
    return (0..<1 + random.below(20)).map { _ in
      let path = (0..<1 + random.below(3)).map { _ in keys[random.below(keys.count)] }
      let change: Change =
        switch random.below(9) {
        case 0: .scalar(random.below(3))
        case 1, 2: .time
        case 3: .tree
        case 4: .removal
        case 5: .priority(random.below(3))
        case 6, 7: .timePriority
        default: .timeWithPriority
        }
      return (path.joined(separator: "/"), change)
    }
  }

  private static func now(_ isTimestamp: Bool) -> Any {
    isTimestamp ? ServerValue.timestamp() : time
  }

  private static func tree(_ isTimestamp: Bool) -> [String: Any] {
    [
      "a": now(isTimestamp), "b": ["0": 1, "1": now(isTimestamp)],
      "1": [".value": 2, ".priority": now(isTimestamp)],
    ]
  }

  private func database() -> Database {
    Database.inMemory(
      options: DatabaseOptions(),
      environment: Environment(
        fileSystem: SimulatedDisk(seed: 1), clock: SimulatedClock(at: Int64(Self.time)),
        randomness: SeededRandomness(seed: 1)))
  }

  @Test("in a transaction they are what the time itself would be")
  func transactions() async throws {
    for seed in 1...400 as ClosedRange<UInt64> {
      var results: [String] = []
      for isTimestamp in [true, false] {
        let ref = database().reference().child("p")
        try await ref.setValue(["a": ["a": 1, "b": [".value": 2, ".priority": 3]], "0": 1])
        let seen = try await ref.transaction { data in
          for (path, change) in Self.changes(seed) {
            let place = data.childData(byAppendingPath: path)
            switch change {
            case .scalar(let value): place.value = value
            case .time: place.value = Self.now(isTimestamp)
            case .tree: place.value = Self.tree(isTimestamp)
            case .removal: place.value = nil
            case .priority(let value): place.priority = value
            case .timePriority: place.priority = Self.now(isTimestamp)
            case .timeWithPriority:
              place.value = [".value": Self.now(isTimestamp), ".priority": Self.now(isTimestamp)]
            }
          }
          return shown(data.value) + shown(data.childData(byAppendingPath: "a").value)
        }
        results.append(
          seen.replacing("{.sv:\"timestamp\"}", with: "\(Self.time)")
            + shown(try await ref.getData().valueInExportFormat()))
      }
      #expect(results[0] == results[1], "seed \(seed)")
    }
  }

  @Test("registered for the end they are what the time itself would be")
  func disconnect() async throws {
    for seed in 1...400 as ClosedRange<UInt64> {
      var results: [String] = []
      for isTimestamp in [true, false] {
        let database = database()
        let root = database.reference()
        try await root.setValue(["a": ["a": 1, "b": [".value": 2, ".priority": 3]], "0": 1])
        for (index, (path, change)) in Self.changes(seed).enumerated() {
          let ref = root.child(path)
          switch change {
          case .scalar(let value): try await ref.onDisconnectSetValue(value)
          case .time: try await ref.onDisconnectSetValue(Self.now(isTimestamp))
          case .tree: try await ref.onDisconnectSetValue(Self.tree(isTimestamp))
          case .removal: try await ref.onDisconnectRemoveValue()
          case .priority(let value):
            try await root.onDisconnectUpdateChildValues(["\(path)/.priority": value])
          case .timePriority:
            try await root.onDisconnectUpdateChildValues([
              "\(path)/.priority": Self.now(isTimestamp)
            ])
          case .timeWithPriority:
            try await ref.onDisconnectSetValue(
              Self.now(isTimestamp), andPriority: Self.now(isTimestamp))
          }
          if index % 5 == 4 { try await ref.parent!.cancelDisconnectOperations() }
        }
        database.goOffline()
        results.append(shown(try await root.getData().valueInExportFormat()))
      }
      #expect(results[0] == results[1], "seed \(seed)")
    }
  }

  // Were each change to look at all timestamps, or each of these to copy what is shown, this would take
  // minutes.
  @Test("many of them, set one by one and read back")
  func many() async throws {
    let count = 20_000
    let ref = database().reference().child("p")
    let shownCount = try await ref.transaction { data in
      for number in 0..<count {
        let child = data.childData(byAppendingPath: "\(number)x")
        child.value = ServerValue.timestamp()
        child.priority = ServerValue.timestamp()
        child.childData(byAppendingPath: "/").value = ServerValue.timestamp()
      }
      let values = data.value as? [String: Any] ?? [:]
      return values.values.filter { $0 is [AnyHashable: Any] }.count
    }
    #expect(shownCount == count)
    let children = try await ref.getData()
    #expect(children.childrenCount == UInt(count))
    #expect(children.allSatisfy { $0.int == Self.time })
  }
}
