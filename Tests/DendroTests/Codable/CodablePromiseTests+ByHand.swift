import Dendro
import DendroTestSupport
import Foundation
import Testing

/// Types that encode themselves, and names that mean something to the database.
@Suite("Codable by hand: equal or refused")
struct CodableByHandTests {
  private let ref = Database.inMemory().reference().child("rooms/7")

  private func readBack<T: Codable & Equatable>(_ value: T) async throws -> T {
    try await ref.setValue(from: value)
    return try await ref.getData(as: T.self)
  }

  private func refusal<T: Encodable>(_ value: T) async -> String {
    do {
      try await ref.setValue(from: value)
      return "acknowledged"
    } catch {
      return (error as? DatabaseError)?.message ?? "\(error)"
    }
  }

  struct Ranked: Codable, Equatable {
    enum CodingKeys: String, CodingKey {
      case name
      case priority = ".priority"
    }
    var name: String?
    var priority: Decimal?
  }

  @Test("a priority without data would be lost")
  func priorityAlone() async throws {
    try await ref.setValue("before")
    #expect(await refusal(Ranked(priority: 3)).contains("at /rooms/7: nothing is left"))
    #expect(
      await refusal(["a": Ranked(priority: 3), "b": Ranked(name: "x")])
        .contains("at /rooms/7/a: nothing is left"))
    #expect(
      await refusal([Ranked(name: "a"), Ranked(priority: 1)]).contains("/rooms/7/1: nothing"))
    struct Holder: Codable {
      var name = "a"
      var ranked: Ranked
    }
    #expect(await refusal(Holder(ranked: Ranked(priority: 1))).contains("/rooms/7/ranked: nothing"))
    #expect(try await ref.getData().string == "before")
  }

  struct Exact: Codable, Equatable {
    enum CodingKeys: String, CodingKey {
      case name
      case priority = ".priority"
    }
    var name = "a"
    var priority: UInt64
  }

  @Test("a priority is exact, or refused")
  func exactPriority() async throws {
    #expect(try await readBack(Exact(priority: 1 << 63)) == Exact(priority: 1 << 63))
    #expect(await refusal(Exact(priority: .max)).contains("no double is exactly that number"))
    let long = try #require(Decimal(string: "1.234567890123456789"))
    #expect(
      await refusal(Ranked(name: "a", priority: long)).contains("more digits than are stored"))
  }

  @Test("a priority is read back with every strategy for keys")
  func priorityWithStrategies() async throws {
    let encoder = Database.Encoder()
    let decoder = Database.Decoder()
    encoder.keyEncodingStrategy = .custom { $0.last! }
    decoder.keyDecodingStrategy = .custom { $0.last! }
    let ranked = Ranked(name: "a", priority: 3)
    try await ref.setValue(from: ranked, encoder: encoder)
    #expect(try await ref.getData(as: Ranked.self, decoder: decoder) == ranked)
    encoder.keyEncodingStrategy = .convertToSnakeCase
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    try await ref.setValue(from: ranked, encoder: encoder)
    #expect(try await ref.getData(as: Ranked.self, decoder: decoder) == ranked)
  }

  struct Leaf: Codable {
    enum CodingKeys: String, CodingKey {
      case value = ".value"
      case priority = ".priority"
    }
    var value = 5
    var priority = 1
  }

  @Test("names that no decoder finds again are refused")
  func misplacedNames() async throws {
    try await ref.setValue("before")
    #expect(
      await refusal([".priority": 1, "a": 2]).contains("the key .priority could not be read back"))
    #expect(await refusal([".value": 5, "a": 2]).contains("the key .value could not be read back"))
    #expect(await refusal(Leaf()).contains("the key .value could not be read back"))
    #expect(
      await refusal(["b": [".priority": 1, "a": 2]]).contains("at /rooms/7/b: the key .priority"))
    #expect(try await ref.getData().string == "before")
    try await ref.removeValue()
    let error = await failure {
      try await ref.runTransaction(as: [String: Int].self) { $0 = [".priority": 1, "a": 2] }
    }
    #expect(error?.code == .invalidData)
    #expect(try await ref.getData().isEmpty)
  }

  /// As people write it.
  enum Content: Codable, Equatable {
    case text(String)
    case items([Int])

    enum CodingKeys: String, CodingKey { case text, items }

    init(from decoder: any Swift.Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      if let text = try container.decodeIfPresent(String.self, forKey: .text) {
        self = .text(text)
      } else if let items = try container.decodeIfPresent([Int].self, forKey: .items) {
        self = .items(items)
      } else {
        throw DecodingError.dataCorrupted(
          .init(codingPath: decoder.codingPath, debugDescription: "neither text nor items"))
      }
    }

    func encode(to encoder: any Swift.Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      switch self {
      case .text(let text): try container.encode(text, forKey: .text)
      case .items(let items): try container.encode(items, forKey: .items)
      }
    }
  }

  struct Page: Codable, Equatable {
    var title = "a"
    var content: Content
  }

  @Test("a case of an enum that encodes itself is kept, or refused if nothing is left of it")
  func enumByHand() async throws {
    #expect(try await readBack(Page(content: .items([1]))) == Page(content: .items([1])))
    #expect(
      await refusal(Page(content: .items([])))
        == "at /rooms/7/content: nothing is left of an enum's case that holds an empty value, so it could not be read as that case"
    )
  }

  enum Kind: Codable, Equatable {
    case a
    case b(Int?)
  }

  /// Encodes as what it holds.
  struct Wrapper: Codable, Equatable {
    var kind: Kind

    init(kind: Kind) { self.kind = kind }
    init(from decoder: any Swift.Decoder) throws { kind = try Kind(from: decoder) }
    func encode(to encoder: any Swift.Encoder) throws { try kind.encode(to: encoder) }
  }

  @Test("a case is kept behind a type that passes its encoder on")
  func forwarded() async throws {
    for kind in [Kind.a, .b(nil), .b(1)] {
      #expect(try await readBack(Wrapper(kind: kind)) == Wrapper(kind: kind))
      #expect(try await readBack(["k": Wrapper(kind: kind)]) == ["k": Wrapper(kind: kind)])
    }
  }

  /// Whose container at a key is one by any names.
  struct Nested: Codable, Equatable {
    struct Name: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    enum CodingKeys: String, CodingKey { case map }

    var map: [String: Int]

    init(map: [String: Int]) { self.map = map }

    init(from decoder: any Swift.Decoder) throws {
      map = try decoder.container(keyedBy: CodingKeys.self).decode([String: Int].self, forKey: .map)
    }

    func encode(to encoder: any Swift.Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      var nested = container.nestedContainer(keyedBy: Name.self, forKey: .map)
      for (name, value) in map { try nested.encode(value, forKey: Name(stringValue: name)) }
    }
  }

  struct Holder: Codable, Equatable {
    var title = "a"
    var nested: Nested
  }

  @Test("an empty nested container of what is no enum is read as empty")
  func emptyNested() async throws {
    for map in [[:], ["a": 1]] {
      let holder = Holder(nested: Nested(map: map))
      #expect(try await readBack(holder) == holder)
    }
  }

  /// A dictionary whose keys are of a form of their own.
  struct Users: Codable, Equatable {
    struct Key: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init?(stringValue: String) {
        guard stringValue.hasPrefix("user-") else { return nil }
        self.stringValue = stringValue
      }
      init?(intValue: Int) { nil }
    }
    var tags: [String: [Int]]

    init(tags: [String: [Int]]) { self.tags = tags }

    init(from decoder: any Swift.Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      tags = [:]
      for key in container.allKeys {
        tags[key.stringValue] = try container.decode([Int].self, forKey: key)
      }
    }

    func encode(to encoder: any Swift.Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      for (name, value) in tags {
        if let key = Key(stringValue: name) { try container.encode(value, forKey: key) }
      }
    }
  }

  @Test("a key of any form is not lost")
  func keysOfOwnForm() async throws {
    let users = Users(tags: ["user-a": [1]])
    #expect(try await readBack(users) == users)
    #expect(
      await refusal(Users(tags: ["user-a": [1], "user-b": []]))
        == "at /rooms/7/user-b: nothing is left of an empty value, so its key would be lost")
  }
}
