import Dendro
import DendroTestSupport
import Foundation
import Testing

/// Transactions on values of types of one's own.
@Suite("Typed transactions")
struct TypedTransactionTests {
  private let ref = Database.inMemory().reference().child("rooms/7")

  private struct Room: Codable, Equatable {
    var name: String
    var guests = 0
    var tags: [String] = []
    var seats: [String: Seat] = [:]
    @ServerTimestamp var changedAt: Date?
  }

  private struct Seat: Codable, Equatable {
    var guest: String?
    var row: Int
  }

  @Test("the difference is written, and what the type does not know stays")
  func difference() async throws {
    try await ref.setValue([
      "name": "Tea", "guests": 2, "color": "red", "tags": ["a", "b"],
      "seats": ["s1": ["row": 1, "price": 5], "s2": ["row": 2, "guest": "Ada"]],
      "changedAt": 1000,
    ])
    try await ref.setPriority(3)
    let guests = try await ref.runTransaction(as: Room.self) { room in
      room?.guests += 1
      room?.tags.append("c")
      room?.seats["s1"]?.guest = "Ben"
      room?.seats["s2"] = nil
      room?.seats["s3"] = Seat(row: 3)
      return room?.guests
    }
    #expect(guests == 3)
    let snapshot = try await ref.getData()
    #expect(
      snapshot.typedValue == [
        "name": "Tea", "guests": 3, "color": "red", "tags": ["a", "b", "c"],
        "seats": ["s1": ["row": 1, "price": 5, "guest": "Ben"], "s3": ["row": 3]],
        "changedAt": 1000,
      ])
    #expect(snapshot.priority as? Double == 3)
  }

  @Test("the entry in the log is what changed")
  func log() async throws {
    let events = Shared<[String]>([])
    try await ref.setValue(from: Room(name: "Tea", tags: ["a"]))
    let handle = ref.observe(.childChanged) { child in events.withLock { $0.append(child.key) } }
    try await ref.runTransaction(as: Room.self) { $0?.guests = 5 }
    try await ref.runTransaction(as: Room.self) { _ in }
    await settle(ref.database)
    ref.removeObserver(withHandle: handle)
    #expect(events.value == ["guests"])
  }

  @Test("nothing becomes something, and something nothing")
  func nothing() async throws {
    try await ref.runTransaction(as: Room.self) { room in
      #expect(room == nil)
      room = Room(name: "New")
    }
    let room = try await ref.getData(as: Room.self)
    #expect(room.name == "New" && (room.changedAt ?? .distantPast) > .now - 600)
    try await ref.runTransaction(as: Room.self) { $0 = nil }
    #expect(try await ref.getData().exists() == false)
    try await ref.runTransaction(as: Int.self) { $0 = ($0 ?? 40) + 2 }
    #expect(try await ref.getData().int == 42)
  }

  @Test("what does not fit, is thrown or would be lost writes nothing, and says where")
  func errors() async throws {
    struct Stop: Error {}
    try await ref.setValue(["name": "Tea", "guests": "many", "tags": ["a"]])
    let before = try await ref.getData().typedValue
    let mismatch = await #expect(throws: DecodingError.self) {
      try await ref.runTransaction(as: Room.self) { $0?.guests = 1 }
    }
    #expect(place(mismatch) == "typeMismatch rooms.7.guests")
    struct Tags: Codable {
      var tags: [String?]?
    }
    await #expect(throws: Stop.self) {
      try await ref.runTransaction(as: Tags.self) { tags in
        tags?.tags = ["x"]
        throw Stop()
      }
    }
    for lost in [["a", nil], []] as [[String?]] {
      let error = await failure {
        try await ref.runTransaction(as: Tags.self) { $0?.tags = lost }
      }
      #expect(error?.code == .invalidData)
      #expect(error?.message.hasPrefix("at /rooms/7/tags") == true, "\(error?.message ?? "")")
    }
    #expect(try await ref.getData().typedValue == before)
  }

  @Test("mutable data as values of Swift")
  func mutableData() async throws {
    try await ref.setValue(["n": 1, "d": 0.5, "s": "x", "b": true, "at": ["row": 7]])
    try await ref.transaction { data in
      #expect(data["n"].int == 1 && data["d"].double == 0.5 && data["n"].string == nil)
      #expect(data["s"].string == "x" && data["b"].bool == true)
      #expect(try data["at"].data(as: Seat.self) == Seat(guest: nil, row: 7))
      data["n"].int? += 1
      data["s"].string = nil
      data["b"].bool = false
      data["d"].double = 2
      try data["new/seat"].setValue(from: Seat(guest: "Ada", row: 1))
      #expect(throws: DecodingError.self) { try data["n"].data(as: Seat.self) }
    }
    #expect(
      try await ref.getData().typedValue == [
        "n": 2, "d": 2.0, "b": false, "at": ["row": 7],
        "new": ["seat": ["guest": "Ada", "row": 1]],
      ])
    let error = await failure {
      try await ref.transaction { try $0["seats"].setValue(from: [1, nil]) }
    }
    #expect(error?.message.hasPrefix("at /rooms/7/seats/1: ") == true)
  }
}
