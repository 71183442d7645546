import Dendro
import Foundation
import Testing

@Suite("Errors of the coders")
struct CodableErrorTests {
  /// Holds itself.
  final class Loop: Codable {
    var next: Loop?

    init() {}
  }

  /// Encodes itself as its own single value, without end.
  struct Mirror: Codable {
    init() {}

    init(from decoder: any Decoder) throws {
      self = try decoder.singleValueContainer().decode(Mirror.self)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(self)
    }
  }

  /// A million containers, one in another, without recursion.
  struct Stairs: Encodable {
    var isKeyed: Bool

    func encode(to encoder: any Encoder) throws {
      if isKeyed {
        var container = encoder.container(keyedBy: TextKey.self)
        for _ in 0..<1_000_000 {
          container = container.nestedContainer(keyedBy: TextKey.self, forKey: TextKey("a"))
        }
      } else {
        var container = encoder.unkeyedContainer()
        for _ in 0..<1_000_000 { container = container.nestedUnkeyedContainer() }
      }
    }
  }

  /// Super encoders of super encoders.
  struct Cellars: Encodable {
    func encode(to encoder: any Encoder) throws {
      var encoder = encoder
      for _ in 0..<10_000 {
        var container = encoder.unkeyedContainer()
        encoder = container.superEncoder()
      }
      try 1.encode(to: encoder)
    }
  }

  /// On a thread with a small stack, which builds for debugging and sanitizers use up faster.
  private func onSmallStack(_ body: @escaping @Sendable () -> String?) async -> String? {
    await withCheckedContinuation { continuation in
      let thread = Thread { continuation.resume(returning: body()) }
      thread.stackSize = 1024 * 1024
      thread.start()
    }
  }

  @Test("what holds itself is an error, not the end of the process")
  func endless() async {
    let loop = await onSmallStack {
      let loop = Loop()
      loop.next = loop
      defer { loop.next = nil }
      let error = thrown { _ = try Database.Encoder().encode(loop) }
      #expect(message(error).contains("128"))
      return place(error)
    }
    #expect(loop?.hasPrefix("invalidValue next.next.next") == true)
    #expect(
      await onSmallStack { place(thrown { _ = try Database.Encoder().encode(Mirror()) }) }
        == "invalidValue ")
    #expect(
      await onSmallStack {
        place(thrown { _ = try Database.Decoder().decode(Mirror.self, from: 1) })
      }
        == "dataCorrupted ")
    #expect(
      await onSmallStack {
        var data: [String: Any] = [:]
        for _ in 0..<100_000 { data = ["next": data] }
        defer {
          // Taken apart step by step: the end of such a dictionary is deep too.
          while let next = data["next"] as? [String: Any] { data = next }
        }
        return place(thrown { _ = try Database.Decoder().decode(Loop.self, from: data) })
      }?.hasPrefix("dataCorrupted next.next") == true)
    for stairs in [Stairs(isKeyed: true), Stairs(isKeyed: false)] {
      let error = thrown { _ = try Database.Encoder().encode(stairs) }
      #expect(place(error)?.hasPrefix("invalidValue ") == true)
      #expect(message(error).contains("128"))
    }
    #expect(
      place(thrown { _ = try Database.Encoder().encode(Cellars()) })?.hasPrefix("invalidValue ")
        == true)
  }

  /// Asks for containers that contradict each other.
  struct Contradiction: Encodable {
    var kind: Int

    func encode(to encoder: any Encoder) throws {
      switch kind {
      case 0:
        _ = encoder.container(keyedBy: TextKey.self)
        _ = encoder.unkeyedContainer()
      case 1:
        _ = encoder.unkeyedContainer()
        _ = encoder.container(keyedBy: TextKey.self)
      case 2:
        var container = encoder.singleValueContainer()
        try container.encode(1)
        _ = encoder.container(keyedBy: TextKey.self)
      case 3:
        var container = encoder.singleValueContainer()
        try container.encode(1)
        try container.encode(2)
      default:
        _ = encoder.unkeyedContainer()
        var container = encoder.singleValueContainer()
        try container.encodeNil()
      }
    }
  }

  @Test("containers that contradict each other are an error", arguments: 0..<5)
  func contradictions(kind: Int) {
    let error = thrown { _ = try Database.Encoder().encode(["a": Contradiction(kind: kind)]) }
    #expect(place(error) == "invalidValue a")
    #expect(!message(error).isEmpty)
  }

  /// Passes on an error of its own.
  struct Stubborn: Codable, Equatable {
    struct No: Error {}

    init() {}
    init(from decoder: any Decoder) throws { throw No() }
    func encode(to encoder: any Encoder) throws { throw No() }
  }

  @Test("errors of the types themselves pass")
  func own() async throws {
    #expect(thrown { _ = try Database.Encoder().encode([Stubborn()]) } is Stubborn.No)
    #expect(thrown { _ = try Database.Decoder().decode([Stubborn].self, from: [1]) } is Stubborn.No)
  }

  /// Reads past the end.
  struct Greedy: Decodable, Equatable {
    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      while true { _ = try container.decode(Int.self) }
    }
  }

  @Test("paths lead to the place")
  func paths() async {
    struct Inner: Codable, Equatable { var numbers: [String: [Int]] }
    struct Outer: Codable, Equatable { var inners: [Inner] }
    #expect(
      await refusal(
        Outer.self, ["inners": [["numbers": ["a": [1]]], ["numbers": ["b": [1, "x"]]]]])
        == "typeMismatch inners[1].numbers.b[1]")
    #expect(
      await refusal(Outer.self, ["inners": [["numbers": 5]]]) == "typeMismatch inners[0].numbers")
    #expect(await refusal(Outer.self, ["inners": 5]) == "typeMismatch inners")
    #expect(await refusal(Greedy.self, [1, 2]) == "valueNotFound [2]")
    #expect(await refusal([String: Greedy].self, ["a": [1]]) == "valueNotFound a[1]")
    #expect(
      place(
        thrown { _ = try Database.Encoder().encode(["a": [Double.nan]]) }) == "invalidValue a[0]")
    let error = thrown {
      _ = try Database.Decoder().decode([String: Int].self, from: ["a": "text"])
    }
    #expect(message(error) == "expected a value of type Int, found a string")
  }

  // MARK: What the tree refuses

  @Test(
    "what the tree cannot hold is a DatabaseError with its place",
    arguments: [
      ["a.b": 1], ["": 1], ["a/b": 1], ["x$": 1], [".foo": 1], ["\u{7}": 1],
      [String(repeating: "k", count: 769): 1],
    ])
  func forbiddenKeys(_ value: [String: Int]) async throws {
    let ref = Database.inMemory().reference()
    let error = await failure { try await ref.child("p").setValue(from: ["outer": value]) }
    #expect(error?.code == .invalidData)
    #expect(error?.message.contains("/outer") == true)
    let plain = await failure { try await ref.child("p").setValue(["outer": value]) }
    #expect(error == plain)
    #expect(try await ref.getData().exists() == false)
    let thrown = thrown { try ref.setValue(from: value) } as? DatabaseError
    #expect(thrown?.code == .invalidData)
  }

  @Test("data deeper than the tree can be")
  func depth() async throws {
    indirect enum Nest: Encodable {
      case end, level(Nest)

      init(_ levels: Int) { self = levels == 0 ? .end : .level(Nest(levels - 1)) }

      func encode(to encoder: any Encoder) throws {
        switch self {
        case .end:
          var container = encoder.singleValueContainer()
          try container.encode(1)
        case .level(let nest):
          var container = encoder.unkeyedContainer()
          try container.encode(nest)
        }
      }
    }
    let ref = Database.inMemory().reference()
    try await ref.setValue(from: Nest(32))
    #expect(await failure { try await ref.setValue(from: Nest(33)) }?.code == .invalidData)
    #expect(
      await failure { try await ref.child("a").setValue(from: Nest(32)) }?.code == .invalidData)
    try await ref.child("a").setValue(from: Nest(31))
    #expect(
      await failure { try await ref.setValue(from: String(repeating: "x", count: 10_485_761)) }?
        .code
        == .invalidData)
  }
}
