import Dendro
import Foundation
import Testing

@Suite("Server values")
struct ServerValueTests {
  @Test(
    "an increment adds to what is at the same path before the write",
    arguments: [
      UpdateTests.Case(nil, "/n", ["d": 1], "1"),
      UpdateTests.Case(8, "/n", ["d": 1], "9"),
      UpdateTests.Case("s", "/n", ["d": 1], "1"),
      UpdateTests.Case(["a": 1], "/n", ["d": 1], "1"),
      UpdateTests.Case(true, "/n", ["d": 1], "1"),
      UpdateTests.Case(1, "/n", ["d": 1.5], "2.5"),
      UpdateTests.Case(2.0, "/n", ["d": 1], "3.0"),
      UpdateTests.Case(Int64.max, "/n", ["d": 1], "9.223372036854776e+18"),
      // The double nearest to the sum is Int64.min itself: nothing changes.
      UpdateTests.Case(Int64.min, "/n", ["d": -1], "-9223372036854775808"),
      UpdateTests.Case(Int64.min, "/n", ["d": -4096], "-9.22337203685478e+18"),
      UpdateTests.Case(nil, "/n", ["d": 0], "0"),
      UpdateTests.Case(1, "/n", ["d": NSNumber(value: UInt64.max)], "1.8446744073709552e+19"),
      UpdateTests.Case([".value": 8, ".priority": 2], "/n", ["d": 1], "9"),
    ])
  func increments(_ example: UpdateTests.Case) async throws {
    let number = example.update["d"] as! NSNumber
    for place in ["whole", "nested", "update"] {
      let ref = Database.inMemory().reference().child("top/n")
      try await ref.setValue(example.before)
      switch place {
      case "whole": try await ref.setValue(ServerValue.increment(number))
      case "nested": try await ref.parent!.setValue(["n": ServerValue.increment(number)])
      default: try await ref.parent!.updateChildValues(["n": ServerValue.increment(number)])
      }
      #expect(shown(try await ref.getData().valueInExportFormat()) == example.after, "\(place)")
    }
  }

  @Test("increments one after another")
  func sequence() async throws {
    let ref = Database.inMemory().reference().child("n")
    for (delta, sum) in [(2, 2), (3, 5), (-7, -2)] {
      try await ref.setValue(ServerValue.increment(delta))
      #expect(try await ref.getData().int == sum)
    }
    try await ref.setValue("x")
    try await ref.setValue(ServerValue.increment(4))
    #expect(try await ref.getData().int == 4)
    try await ref.setValue(["k": 1])
    try await ref.setValue(ServerValue.increment(9))
    #expect(try await ref.getData().int == 9)
    try await ref.setValue(ServerValue.increment(NSNumber(value: 0.5)))
    #expect(try await ref.getData().double == 9.5)
  }

  @Test("server values within containers and as priorities")
  func nested() async throws {
    let ref = Database.inMemory().reference().child("p")
    try await ref.setValue(["a": 3, "c": 9])
    try await ref.setValue(["a": ServerValue.increment(2), "b": ServerValue.timestamp()])
    let snapshot = try await ref.getData()
    #expect(snapshot["a"].int == 5)
    #expect(snapshot["b"].int ?? 0 > 1_600_000_000_000)
    #expect(!snapshot.hasChild("c"))

    try await ref.setValue([10, 20])
    try await ref.setValue([ServerValue.increment(1), ServerValue.increment(1)])
    #expect(shown(try await ref.getData().value) == "[11,21]")

    try await ref.setValue([".value": 0, ".priority": 1])
    try await ref.setValue([".value": 0, ".priority": ServerValue.increment(1.5)])
    #expect(shown(try await ref.getData().valueInExportFormat()) == "{.priority:2.5,.value:0}")

    try await ref.setValue([".value": 1, ".priority": 9])
    try await ref.setValue([".value": ServerValue.increment(1), ".priority": 4])
    #expect(shown(try await ref.getData().valueInExportFormat()) == "{.priority:4,.value:2}")

    try await ref.setPriority(ServerValue.increment(3))
    #expect(shown(try await ref.getData().priority) == "7")
    try await ref.parent!.updateChildValues(["p/.priority": ServerValue.increment(1)])
    #expect(shown(try await ref.getData().priority) == "8")
    try await ref.setValue(1, andPriority: ServerValue.increment(1))
    #expect(shown(try await ref.getData().priority) == "9")
  }

  @Test("one write has one time")
  func oneTime() async throws {
    let ref = Database.inMemory().reference()
    try await ref.updateChildValues([
      "a": ServerValue.timestamp(), "b": ["c": ServerValue.timestamp()],
      "d": [".value": 1, ".priority": ServerValue.timestamp()],
    ])
    let snapshot = try await ref.getData()
    let time = try #require(snapshot["a"].int)
    #expect(snapshot["b/c"].int == time)
    #expect(snapshot["d"].priority as? Int == time)
    try await ref.setValue(ServerValue.timestamp())
    #expect(try await ref.getData().int ?? 0 >= time)
  }

  @Test(
    "a timestamp wherever a leaf may be: one value, one event",
    arguments: [
      "set", "within a dictionary", "within an array", ".value", "a priority", "an update's entry",
      "within an update's entry", "an update's priority", "a transaction", "onDisconnect",
    ])
  func timestamps(_ place: String) async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("p")
    try await ref.setValue(["old": 1])
    let recorder = Recorder(database)
    recorder.listen("", ref, [.value])
    _ = await recorder.take()
    let now = ServerValue.timestamp()
    var found: Any?
    switch place {
    case "set": try await ref.setValue(now)
    case "within a dictionary": try await ref.setValue(["a": ["b": now]])
    case "within an array": try await ref.setValue(["x", now] as [Any])
    case ".value": try await ref.setValue([".value": now, ".priority": 1])
    case "a priority": try await ref.setValue(1, andPriority: now)
    case "an update's entry": try await ref.updateChildValues(["a": now])
    case "within an update's entry": try await ref.updateChildValues(["a": ["b": now]])
    case "an update's priority": try await ref.updateChildValues(["old/.priority": now])
    case "a transaction": try await ref.transaction { $0.value = ServerValue.timestamp() }
    default:
      try await ref.onDisconnectSetValue(now)
      database.goOffline()
    }
    let snapshot = try await ref.getData()
    switch place {
    case "within a dictionary", "within an update's entry": found = snapshot["a/b"].value
    case "within an array": found = snapshot["1"].value
    case "a priority": found = snapshot.priority
    case "an update's entry": found = snapshot["a"].value
    case "an update's priority": found = snapshot["old"].priority
    default: found = snapshot.value
    }
    #expect(found as? Int ?? 0 > 1_600_000_000_000)
    #expect(await recorder.take() == ["value \(shown(snapshot.valueInExportFormat()))"])
  }
}
