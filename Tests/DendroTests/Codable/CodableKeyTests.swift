import Dendro
import Foundation
import Testing
import DendroTestSupport

@Suite("Key strategies")
struct CodableKeyTests {
  static let snake = encoder { $0.keyEncodingStrategy = .convertToSnakeCase }
  static let unsnake = decoder { $0.keyDecodingStrategy = .convertFromSnakeCase }

  /// One key of any text.
  struct Keyed: Encodable {
    var name: String

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: TextKey.self)
      try container.encode(1, forKey: TextKey(name))
    }
  }

  /// The keys that a decoder shows.
  struct Keys: Decodable, Equatable {
    var names: [String]

    init(from decoder: any Decoder) throws {
      names = try decoder.container(keyedBy: TextKey.self).allKeys.map(\.stringValue)
    }
  }

  @Test(
    "to snake case",
    arguments: [
      ("simpleOneTwo", "simple_one_two"), ("myURL", "my_url"), ("myURLProperty", "my_url_property"),
      ("singleCharacterAtEndX", "single_character_at_end_x"), ("single", "single"), ("a", "a"),
      ("aA", "a_a"), ("version4Thing", "version4_thing"), ("partCAPS", "part_caps"),
      ("partCAPSLowerAGAIN", "part_caps_lower_again"), ("asdfĆqer", "asdf_ćqer"),
      ("already_snake_case", "already_snake_case"), ("dataPoint22Word", "data_point22_word"),
      ("_oneTwoThree", "_one_two_three"), ("oneTwoThree__", "one_two_three__"),
      ("__test", "__test"), ("URLSession", "u_rl_session"), ("RADAR", "r_adar"),
      ("Sample", "sample"), ("_IAmAnAPPDeveloper", "__i_am_an_app_developer"), ("🐧🐟", "🐧🐟"),
    ])
  func toSnakeCase(_ name: String, _ expected: String) throws {
    #expect(shown(try Self.snake.encode(Keyed(name: name))) == "{\(expected):1}")
  }

  @Test(
    "from snake case",
    arguments: [
      ("a", "a"), ("ALLCAPS", "ALLCAPS"), ("ALL_CAPS", "allCaps"), ("single", "single"),
      ("snake_case", "snakeCase"), ("one_2_three", "one2Three"), ("snake_ćase", "snakeĆase"),
      ("alreadyCamelCase", "alreadyCamelCase"), ("__this_and_that", "__thisAndThat"),
      ("this__and__that", "thisAndThat"), ("this_and_that__", "thisAndThat__"),
      ("this_aNd_that", "thisAndThat"), ("_", "_"), ("___", "___"),
      ("my_url_property", "myUrlProperty"),
    ])
  func fromSnakeCase(_ name: String, _ expected: String) async throws {
    #expect(try await loaded(Keys.self, [name: 1], Self.unsnake).names == [expected])
  }

  @Test("both ways as JSON's coders do", arguments: 0..<20)
  func likeJSON(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let json = JSONEncoder()
    json.keyEncodingStrategy = .convertToSnakeCase
    let back = JSONDecoder()
    back.keyDecodingStrategy = .convertFromSnakeCase
    let pieces = ["a", "b", "Q", "URL", "_", "7", "é", "Ü", "x", "Z", "__"]
    for _ in 0..<200 {
      let name = (0...random.below(7)).map { _ in pieces[random.below(pieces.count)] }.joined()
      let mine = shown(try Self.snake.encode(Keyed(name: name)))
      let theirs = shown(
        try JSONSerialization.jsonObject(with: try json.encode(Keyed(name: name))))
      #expect(mine == theirs, "seed \(seed), \(name)")
      let text = try JSONSerialization.data(withJSONObject: [name: 1])
      #expect(
        try Self.unsnake.decode(Keys.self, from: [name: 1]).names
          == back.decode(Keys.self, from: text).names, "seed \(seed), \(name)")
    }
  }

  struct Outer: Codable, Equatable {
    var oneTwo: Int
    var myURLProperty: URL
    var byName: [String: Int]
    var byNumber: [Int: Inner]
    var innerOnes: [Inner]

    struct Inner: Codable, Equatable { var someThing: String }
  }

  static let outer = Outer(
    oneTwo: 12, myURLProperty: URL(string: "https://example.org/x?y=z")!,
    byName: ["stayAsYouAre": 1, "and_you_too": 2], byNumber: [7: .init(someThing: "seven")],
    innerOnes: [.init(someThing: "a"), .init(someThing: "b")])

  @Test("names are converted at every level, the keys of dictionaries are not")
  func levels() async throws {
    #expect(
      try await stored(Self.outer, Self.snake)
        == "{by_name:{and_you_too:2,stayAsYouAre:1},by_number:{7:{some_thing:\"seven\"}},inner_ones:"
        + "{0:{some_thing:\"a\"},1:{some_thing:\"b\"}},my_url_property:\"https://example.org/x?y=z\","
        + "one_two:12}")
    let data = try Self.snake.encode(Self.outer)
    #expect(try await loaded(Outer.self, data, Self.unsnake) == Self.outer)
    #expect(
      try await loaded([String: Int].self, ["one_two": 1], Self.unsnake) == ["one_two": 1])
    #expect(
      try await loaded(
        [String: [String: Outer.Inner]].self,
        ["one_two": ["three_four": ["some_thing": "x"]]], Self.unsnake)
        == ["one_two": ["three_four": .init(someThing: "x")]])
  }

  @Test("custom keys, given the path")
  func custom() async throws {
    let paths = Shared<[String]>([])
    let encoder = encoder {
      $0.keyEncodingStrategy = .custom { path in
        paths.withLock { $0.append(path.map(\.stringValue).joined(separator: "/")) }
        return TextKey(path.last!.stringValue.uppercased())
      }
    }
    let value = Outer.Inner(someThing: "x")
    #expect(try await stored(["k": [value]], encoder) == "{k:{0:{SOMETHING:\"x\"}}}")
    #expect(paths.value.first == "k/Index 0/someThing")
    let decoder = decoder {
      $0.keyDecodingStrategy = .custom { path in
        TextKey(path.last!.stringValue == "SOMETHING" ? "someThing" : "?")
      }
    }
    #expect(
      try await loaded([String: [Outer.Inner]].self, ["k": [["SOMETHING": "x"]]], decoder)
        == ["k": [value]])
  }

  @Test("paths of errors have the type's names")
  func errors() async throws {
    #expect(
      await refusal(
        Outer.self, ["one_two": 1, "my_url_property": "x:", "by_name": ["a_b": "c"]], Self.unsnake)
        == "typeMismatch byName.a_b")
    #expect(
      await refusal(Outer.Inner.self, ["other": 1], Self.unsnake) == "valueNotFound someThing")
  }
}
