import Dendro
import Foundation
import Testing

@Suite("Codable values")
struct CodableValueTests {
  struct Holder<T: Codable & Equatable & Sendable>: Codable, Equatable, Sendable { var v: T }

  /// One value: encoded alone, in a struct, in an optional and in an array, and read back.
  private func check<T: Codable & Equatable & Sendable>(
    _ value: T, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    #expect(try await stored(value) == text, sourceLocation: sourceLocation)
    #expect(try await stored(Holder(v: value)) == "{v:\(text)}", sourceLocation: sourceLocation)
    #expect(try await stored([value]) == "{0:\(text)}", sourceLocation: sourceLocation)
    #expect(try await stored(Optional(value)) == text, sourceLocation: sourceLocation)
    let ref = Database.inMemory().reference()
    try await ref.setValue(from: Holder(v: value))
    let holder = try await ref.getData(as: Holder<T>.self)
    #expect(holder.v == value, sourceLocation: sourceLocation)
    #expect(try await ref.getData()["v"].data(as: T.self) == value, sourceLocation: sourceLocation)
    #expect(try await ref.getData()["v"].data(as: T?.self) == value, sourceLocation: sourceLocation)
    let objects = try Database.Encoder().encode(Holder(v: value))
    let back = try Database.Decoder().decode(Holder<T>.self, from: objects)
    #expect(back.v == value, sourceLocation: sourceLocation)
  }

  // MARK: Scalars

  @Test("strings and booleans")
  func scalars() async throws {
    try await check("", "\"\"")
    try await check("text", "\"text\"")
    try await check("e\u{301}😀\u{0}", "\"e\u{301}😀\u{0}\"")
    try await check(true, "true")
    try await check(false, "false")
    let kept = try await { () async throws in
      let ref = Database.inMemory().reference()
      try await ref.setValue(from: "e\u{301}")
      return try await ref.getData(as: String.self)
    }()
    #expect(Array(kept.utf8) == Array("e\u{301}".utf8))
  }

  @Test("integers of every width, to their edges")
  func integers() async throws {
    func edges<I: FixedWidthInteger & Codable & Sendable>(_: I.Type) async throws {
      for value in [I.min, I.max, 0, 1, 100] { try await check(value, "\(value)") }
    }
    try await edges(Int.self)
    try await edges(Int8.self)
    try await edges(Int16.self)
    try await edges(Int32.self)
    try await edges(Int64.self)
    try await edges(UInt8.self)
    try await edges(UInt16.self)
    try await edges(UInt32.self)
    try await check(UInt(Int64.max), "9223372036854775807")
    try await check(9_007_199_254_740_993, "9007199254740993")
  }

  @Test("integers above Int64.max are doubles in the tree, and themselves in objects")
  func unsigned() async throws {
    try await check(UInt64(1) << 63, "9.223372036854776e+18")
    try await check(UInt64(3) << 62, "1.3835058055282164e+19")
    let objects = try Database.Encoder().encode(UInt64.max)
    #expect((objects as? NSNumber)?.uint64Value == .max)
    #expect(try Database.Decoder().decode(UInt64.self, from: objects) == .max)
    #expect(try Database.Decoder().decode(Double.self, from: UInt64.max) == 0x1p64)
    #expect(
      place(thrown { _ = try Database.Decoder().decode(Int.self, from: objects) })
        == "dataCorrupted ")
    let ref = Database.inMemory().reference()
    let error = await failure { try await ref.setValue(from: UInt64.max) }
    #expect(error?.code == .invalidData)
  }

  @Test("integers of 128 bits are refused")
  func wide() throws {
    let error = thrown { _ = try Database.Encoder().encode(["a": [Int128(1)]]) }
    #expect(place(error) == "invalidValue a[0]")
    #expect(message(error).contains("128"))
    #expect(place(thrown { _ = try Database.Encoder().encode(UInt128(1)) }) == "invalidValue ")
    let back = thrown { _ = try Database.Decoder().decode([Int128].self, from: [1]) }
    #expect(place(back) == "typeMismatch [0]")
    #expect(message(back).contains("128"))
    #expect(
      place(thrown { _ = try Database.Decoder().decode(Int128.self, from: 1) }) == "typeMismatch ")
  }

  @Test("floats")
  func floats() async throws {
    try await check(1.5, "1.5")
    try await check(5.0, "5.0")
    try await check(Double.greatestFiniteMagnitude, "1.7976931348623157e+308")
    try await check(Double.leastNonzeroMagnitude, "5e-324")
    try await check(Float(0.1), "0.10000000149011612")
    try await check(Float.greatestFiniteMagnitude, "3.4028234663852886e+38")
    try await check(CGFloat(2.5), "2.5")
    #expect(try await loaded(Float.self, 0.1) == 0.1)
    #expect(try await loaded(Float.self, 16_777_217) == 16_777_216)
    #expect(try await loaded(Double.self, 9_007_199_254_740_993) == 9_007_199_254_740_992)
    #expect(await refusal(Float.self, 1e300) == "dataCorrupted ")
  }

  @Test("decimals and URLs")
  func decimals() async throws {
    try await check(Decimal(string: "0.1")!, "0.1")
    try await check(Decimal(string: "3.14159265358979")!, "3.14159265358979")
    try await check(Decimal(-5), "-5.0")
    try await check(URL(string: "https://example.org/a?b=c#d")!, "\"https://example.org/a?b=c#d\"")
    let relative = URL(string: "b", relativeTo: URL(string: "https://example.org/a/"))!
    #expect(try await stored(relative) == "\"https://example.org/a/b\"")
    let exact = Decimal(string: "12345678901234567890.12345")!
    let object = try Database.Encoder().encode(exact)
    #expect(object is NSDecimalNumber)
    #expect(try Database.Decoder().decode(Decimal.self, from: object) == exact)
    #expect(try await loaded(Decimal.self, 7) == 7)
    #expect(try Database.Decoder().decode(Decimal.self, from: UInt64.max) == Decimal(UInt64.max))
    #expect(try Database.Decoder().decode(Int.self, from: Decimal(7)) == 7)
    #expect(
      place(thrown { _ = try Database.Decoder().decode(Int.self, from: Decimal(7.5)) })
        == "dataCorrupted ")
    #expect(await refusal(Decimal.self, 1e300) == "dataCorrupted ")
    #expect(await refusal(Decimal.self, "7") == "typeMismatch ")
    #expect(await refusal(URL.self, 5) == "typeMismatch ")
    #expect(await refusal(URL.self, "") == "dataCorrupted ")
  }

  @Test("objects are Foundation's")
  func objects() throws {
    let object = try Database.Encoder().encode(Holder(v: [1, 2]))
    #expect(object as? NSDictionary == ["v": [1, 2]])
    #expect(try Database.Encoder().encode(true) as? NSNumber == true)
    #expect(try Database.Encoder().encode(5) is NSNumber)
    #expect(try Database.Encoder().encode("x") as? String == "x")
    #expect(try Database.Encoder().encode(Int?.none) is NSNull)
    #expect(
      try Database.Decoder().decode(Holder<[Int]>.self, from: NSDictionary(dictionary: ["v": [1]]))
        .v == [1])
    let keys: [AnyHashable: Any] = [1: "a", 2: "b"]
    #expect(try Database.Decoder().decode([Int: String].self, from: keys) == [1: "a", 2: "b"])
    #expect(
      place(thrown { _ = try Database.Decoder().decode([Int: String].self, from: [1.5: "a"]) })
        == "typeMismatch ")
    #expect(try Database.Decoder().decode(Int?.self, from: Int?.none as Any) == nil)
    #expect(try Database.Decoder().decode(Int?.self, from: Int??.some(5) as Any) == 5)
    #expect(try Database.Decoder().decode(String.self, from: NSString("x")) == "x")
    #expect(try Database.Decoder().decode([Int].self, from: NSArray(array: [1, 2])) == [1, 2])
    #expect(
      place(thrown { _ = try Database.Decoder().decode(Int.self, from: Date()) }) == "typeMismatch "
    )
  }

  // MARK: Strictness

  struct Refusal: Sendable {
    var type: any (Decodable & Equatable & Sendable).Type
    var data: @Sendable () -> Any?
    var place: String

    init(
      _ type: any (Decodable & Equatable & Sendable).Type,
      _ data: @autoclosure @escaping @Sendable () -> Any?, _ place: String
    ) {
      (self.type, self.data, self.place) = (type, data, place)
    }
  }

  static let refusals = [
    Refusal(Bool.self, 1, "typeMismatch "), Refusal(Bool.self, 0.0, "typeMismatch "),
    Refusal(Bool.self, "true", "typeMismatch "), Refusal(Bool.self, ["a": 1], "typeMismatch "),
    Refusal(Int.self, true, "typeMismatch "), Refusal(Double.self, false, "typeMismatch "),
    Refusal(Float.self, true, "typeMismatch "), Refusal(Decimal.self, true, "typeMismatch "),
    Refusal(UInt8.self, true, "typeMismatch "), Refusal(Int.self, "5", "typeMismatch "),
    Refusal(Int.self, 5.5, "dataCorrupted "), Refusal(Int.self, 1e19, "dataCorrupted "),
    Refusal(Int64.self, -1e19, "dataCorrupted "), Refusal(Int8.self, 128, "dataCorrupted "),
    Refusal(Int8.self, -129, "dataCorrupted "), Refusal(Int16.self, 40_000, "dataCorrupted "),
    Refusal(Int32.self, 2_147_483_648, "dataCorrupted "), Refusal(UInt.self, -1, "dataCorrupted "),
    Refusal(UInt8.self, 256, "dataCorrupted "), Refusal(UInt16.self, 65_536, "dataCorrupted "),
    Refusal(UInt32.self, 4_294_967_296, "dataCorrupted "),
    Refusal(UInt64.self, -0.5, "dataCorrupted "), Refusal(String.self, 5, "typeMismatch "),
    Refusal(String.self, true, "typeMismatch "), Refusal(String.self, ["a"], "typeMismatch "),
    Refusal([Int].self, 5, "typeMismatch "), Refusal([Int].self, "x", "typeMismatch "),
    Refusal([String: Int].self, "x", "typeMismatch "),
    Refusal(Holder<Int>.self, 5, "typeMismatch "),
    Refusal([Int].self, ["a": 1], "typeMismatch "),
    Refusal([Int].self, [1, true], "typeMismatch [1]"),
    Refusal([Int].self, ["-1": 1], "typeMismatch "),
    Refusal([Int].self, ["01": 1], "typeMismatch "),
    Refusal([[String: Int]].self, [["a": 1], ["b": "c"]], "typeMismatch [1].b"),
    Refusal(Holder<Holder<[Int]>>.self, ["v": ["v": [1, 2, 3.5]]], "dataCorrupted v.v[2]"),
  ]

  @Test("what is not of the type is refused with its place", arguments: refusals)
  func strict(_ row: Refusal) async throws {
    func open<T: Decodable & Equatable>(_ type: T.Type) async -> String? {
      await refusal(type, row.data())
    }
    #expect(await open(row.type) == row.place)
  }

  @Test("numbers of the other kind that fit are taken")
  func fitting() async throws {
    #expect(try await loaded(Int.self, 5.0) == 5)
    #expect(try await loaded(UInt8.self, 255.0) == 255)
    #expect(try await loaded(Int.self, -0.0) == 0)
    #expect(try await loaded(Double.self, 5) == 5)
    #expect(try await loaded(Float.self, 5) == 5)
    #expect(try await loaded([Int64].self, [1, 2.0]) == [1, 2])
  }

  // MARK: Nothing

  struct Optionals: Codable, Equatable {
    var a: Int?
    var b: String?
  }

  /// Encodes nil itself.
  struct Explicit: Codable, Equatable {
    var a: Int?

    enum CodingKeys: CodingKey { case a }

    init(a: Int?) { self.a = a }

    init(from decoder: any Decoder) throws {
      a = try decoder.container(keyedBy: CodingKeys.self).decode(Int?.self, forKey: .a)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      if let a { try container.encode(a, forKey: .a) } else { try container.encodeNil(forKey: .a) }
    }
  }

  struct Silent: Codable, Equatable {
    init() {}
    init(from decoder: any Decoder) throws {}
    func encode(to encoder: any Encoder) throws {}
  }

  struct Empty: Codable, Equatable {}

  @Test("nil, left out and written")
  func optionals() async throws {
    #expect(shown(try Database.Encoder().encode(Optionals(a: nil, b: "x"))) == "{b:\"x\"}")
    #expect(shown(try Database.Encoder().encode(Explicit(a: nil))) == "{a:null}")
    #expect(try await stored([Explicit(a: nil), Explicit(a: 1)]) == "{1:{a:1}}")
    #expect(try await stored([1, nil, 3]) == "{0:1,2:3}")
    #expect(try await loaded(Optionals.self, ["b": "x"]) == Optionals(a: nil, b: "x"))
    #expect(
      try Database.Decoder().decode(
        Optionals.self, from: ["a": NSNull(), "b": "x"] as [String: Any])
        == Optionals(a: nil, b: "x"))
    #expect(
      try await loaded([Explicit].self, [["a": 1], ["b": 2]]) == [.init(a: 1), .init(a: nil)])
  }

  @Test("nothing at the top")
  func topNothing() async throws {
    #expect(try await loaded(Int?.self, nil) == nil)
    #expect(try await loaded(Optionals?.self, nil) == nil)
    #expect(try await loaded([Int]?.self, nil) == nil)
    for type in [
      Int.self, String.self, Bool.self, Optionals.self, [Int].self, [String: Int].self, URL.self,
      Date.self, Data.self, Decimal.self, Double.self, Float.self,
    ] as [any (Decodable & Equatable).Type] {
      func open<T: Decodable & Equatable>(_ type: T.Type) async -> String? {
        await refusal(type, nil)
      }
      #expect(await open(type) == "valueNotFound ", "\(type)")
    }
    #expect(await refusal(Holder<Int>.self, ["w": 1]) == "valueNotFound v")
    #expect(await refusal(Holder<String>.self, ["w": 1]) == "valueNotFound v")
  }

  @Test("types that encode nothing")
  func silent() async throws {
    let error = thrown { _ = try Database.Encoder().encode(Silent()) }
    #expect(place(error) == "invalidValue ")
    #expect(message(error).contains("Silent"))
    #expect(
      place(thrown { try Database.inMemory().reference().setValue(from: Silent()) })
        == "invalidValue ")
    #expect(shown(try Database.Encoder().encode([Silent()])) == "[{}]")
    #expect(shown(try Database.Encoder().encode(Holder(v: Empty()))) == "{v:{}}")
    #expect(shown(try Database.Encoder().encode(Empty())) == "{}")
    #expect(shown(try Database.Encoder().encode([Int]())) == "[]")
    #expect(shown(try Database.Encoder().encode([String: Int]())) == "{}")
  }

  @Test("what was pruned below the top comes back empty")
  func pruned() async throws {
    struct Post: Codable, Equatable {
      var title: String
      var tags: [String]
      var votes: [String: Int]
      var meta: Optionals
      var grid: [[Int]]
      var set: Set<Int>
    }
    let post = Post(
      title: "x", tags: [], votes: [:], meta: Optionals(), grid: [[1], [], [2]], set: [])
    let ref = Database.inMemory().reference()
    try await ref.setValue(from: post)
    #expect(shown(try await ref.getData().value) == "{grid:[[1],null,[2]],title:\"x\"}")
    #expect(try await ref.getData(as: Post.self) == post)
  }
}
