import Dendro
import DendroTestSupport
import Foundation
import Testing

/// Every value that is acknowledged by `setValue(from:)` is read back equal by the same type, or was refused with an
/// error that names the place.
@Suite("Codable: equal or refused")
struct CodablePromiseTests {
  enum Presence: Codable, Hashable {
    case online
    case away(since: Date)
    case busy(reason: String?, Set<String>)
  }

  struct User: Codable, Hashable {
    var name: String
    var presence: Presence
    var tags: [String] = []
    var friends: Set<Int> = []
    var votes: [String: Int] = [:]
    var settings = Settings()
  }

  struct Settings: Codable, Hashable {
    var color: String?
    var size: Int?
  }

  private let ref = Database.inMemory().reference().child("rooms/7")

  private func readBack<T: Codable & Equatable>(_ value: T) async throws -> T {
    try await ref.setValue(from: value)
    return try await ref.getData(as: T.self)
  }

  // MARK: What comes back

  @Test(
    "a case without values is kept, wherever it stands",
    arguments: [
      Presence.online, .away(since: Date(timeIntervalSinceReferenceDate: 7.5)),
      .busy(reason: nil, []), .busy(reason: "call", ["a"]),
    ])
  func cases(presence: Presence) async throws {
    #expect(try await readBack(presence) == presence)
    let user = User(name: "Ada", presence: presence)
    #expect(try await readBack(user) == user)
    #expect(try await readBack([presence, presence]) == [presence, presence])
    #expect(try await readBack(["k": presence]) == ["k": presence])
    #expect(try await readBack(Optional(presence)) == presence)
    let decoded = try Database.Decoder().decode(
      Presence.self, from: Database.Encoder().encode(presence))
    #expect(decoded == presence)
  }

  @Test("a case without values is stored as true")
  func form() async throws {
    try await ref.setValue(from: User(name: "Ada", presence: .online))
    #expect(
      try await ref.getData().typedValue == ["name": "Ada", "presence": ["online": true]])
  }

  @Test("data with an empty object for a case, as other encoders make it, are decoded")
  func emptyObject() throws {
    let presence = try Database.Decoder().decode(
      Presence.self, from: ["online": [String: Any]()])
    #expect(presence == .online)
  }

  @Test("empty containers are properties that are read back as empty")
  func emptyProperties() async throws {
    let user = User(name: "", presence: .online)
    #expect(try await readBack(user) == user)
    #expect(try await readBack([[], [1]]) == [[], [1]])
    #expect(try await readBack([nil, 1]) == [nil, 1])
    #expect(try await readBack([Settings(), Settings(color: "red")])[0] == Settings())
  }

  @Test("numbers at the ends of what is stored")
  func numbers() async throws {
    #expect(try await readBack(Int64.min) == .min)
    #expect(try await readBack(Int64.max) == .max)
    #expect(try await readBack(UInt64(1) << 63) == 1 << 63)
    #expect(try await readBack(Decimal(Int64.max)) == Decimal(Int64.max))
    for text in ["0.1", "-123456.789", "1e60", "0.00000001"] {
      let decimal = try #require(Decimal(string: text))
      #expect(try await readBack(decimal) == decimal)
    }
  }

  struct Ranked: Codable, Equatable {
    enum CodingKeys: String, CodingKey {
      case name
      case priority = ".priority"
    }
    var name: String
    var priority: Double?
  }

  @Test("a priority is encoded and decoded")
  func priority() async throws {
    #expect(try await readBack(Ranked(name: "a", priority: 3)) == Ranked(name: "a", priority: 3))
    #expect(try await ref.getData().priority as? Double == 3)
    #expect(try await readBack(Ranked(name: "a")) == Ranked(name: "a"))
  }

  // MARK: What is refused

  private func refusal<T: Encodable>(_ value: T) async -> String {
    do {
      try await ref.setValue(from: value)
      return "acknowledged"
    } catch {
      #expect((error as? DatabaseError)?.code == .invalidData)
      return (error as? DatabaseError)?.message ?? "\(error)"
    }
  }

  private static let lostElement = "nothing is left of an empty value, so its element would be lost"
  private static let lostKey = "nothing is left of an empty value, so its key would be lost"
  private static let emptyOptional =
    "nothing is left of an optional that is set to an empty value, so it would be read as nil"
  private static let empty =
    "nothing is left of an empty value, so it could not be read as what it is; removeValue() removes what is there"

  private struct Holder<Value: Codable & Sendable>: Codable, Sendable {
    var value: Value?
  }

  @Test("what would be read as another value is refused, with its place and the reason")
  func refused() async throws {
    #expect(await refusal([1, nil]) == "at /rooms/7/1: \(Self.lostElement)")
    #expect(await refusal([[1], []]) == "at /rooms/7/1: \(Self.lostElement)")
    #expect(await refusal(["a": [[Int]()], "b": [[1]]]) == "at /rooms/7/a: \(Self.lostKey)")
    #expect(
      await refusal([Choice.one([[Int]()]), .nothing])
        == "at /rooms/7/0/one/_0/0: \(Self.lostElement)")
    #expect(await refusal([Int?](repeating: nil, count: 3)) == "at /rooms/7: \(Self.empty)")
    let sparse = [1] + [Int?](repeating: nil, count: 1024) + [1]
    #expect(await refusal(sparse) == "at /rooms/7/1: \(Self.lostElement)")
    #expect(await refusal(["a": [Int](), "b": [1]]) == "at /rooms/7/a: \(Self.lostKey)")
    #expect(await refusal(["a": nil, "b": 1]) == "at /rooms/7/a: \(Self.lostKey)")
    #expect(
      await refusal([7: Settings(), 8: Settings(size: 1)]) == "at /rooms/7/7: \(Self.lostKey)")
    #expect(
      await refusal(Holder(value: [Int]())) == "at /rooms/7/value: \(Self.emptyOptional)")
    #expect(
      await refusal(Holder(value: Settings())) == "at /rooms/7/value: \(Self.emptyOptional)")
    #expect(await refusal(Int??.some(nil)) == "at /rooms/7: \(Self.emptyOptional)")
    #expect(await refusal([Int??.some(nil), 1]) == "at /rooms/7/0: \(Self.emptyOptional)")
    #expect(await refusal([Int]()) == "at /rooms/7: \(Self.empty)")
    #expect(await refusal(Settings()) == "at /rooms/7: \(Self.empty)")
    #expect(await refusal([Set([1]), []]) == "at /rooms/7/1: \(Self.lostElement)")
    for set in [Set([[], [1]]), [[], [2]], [[], [3]]] {
      #expect(await refusal(set).hasSuffix(Self.lostElement))
    }
    #expect(
      await refusal(["n": UInt64.max])
        == "at /rooms/7/n: 18446744073709551615 is above 9223372036854775807, and no double is exactly that number"
    )
    let decimal = Decimal(string: "0.1234567890123456789")
    #expect(
      await refusal(["n": decimal])
        == "at /rooms/7/n: 0.1234567890123456789 has more digits than are stored: 15 to 17 of a double, or 64 bits of an integer"
    )
    #expect(await refusal(["a.b": 1]).hasPrefix("at /rooms/7: "))
    #expect(try await ref.getData().exists() == false)
  }

  @Test("in an update, too")
  func update() async throws {
    let error = await failure {
      try await ref.update { update in try update.set("users/ada", from: ["tags": [1, nil]]) }
    }
    #expect(error?.message == "at /rooms/7/users/ada/tags/1: \(Self.lostElement)")
  }

  // MARK: Random types

  @Test("values of random types come back equal, or are refused", arguments: 0..<20)
  func random(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    var counts = (equal: 0, refused: 0)
    for round in 0..<Scale.scaled(5_000) {
      let type = randomType(&random)
      let hint: Comment = "seed \(seed), round \(round), \(type)"
      for _ in 0..<10 {
        switch try await check(type, &random, hint) {
        case true?: counts.equal += 1
        case false?: counts.refused += 1
        case nil: break
        }
      }
    }
    // Otherwise nothing was tested.
    #expect(counts.equal > counts.refused / 4 && counts.refused > 0, "\(counts)")
  }

  /// - Returns: whether the value came back equal; false if it was refused, nil if Foundation's coders change it.
  private func check<T: RandomValue>(
    _ type: T.Type, _ random: inout SeededGenerator, _ hint: Comment
  ) async throws -> Bool? {
    let value = T(random: &random)
    let dates = DateStrategy.allCases[random.below(DateStrategy.allCases.count)]
    guard dates.keeps(value) else { return nil }
    let (encoder, decoder) = dates.coders
    do {
      try await ref.setValue(from: value, encoder: encoder)
    } catch let error as DatabaseError {
      #expect(error.code == .invalidData && error.message.hasPrefix("at /rooms/7"), hint)
      return false
    }
    do {
      let found = try await ref.getData(as: T.self, decoder: decoder)
      #expect(found == value, hint)
    } catch {
      Issue.record("\(hint) \(value) \(error)")
    }
    return true
  }
}
