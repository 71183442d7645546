import Dendro
import Foundation
import DendroTestSupport
import Testing

@Suite("Codable shapes")
struct CodableShapeTests {
  func check<T: Codable & Equatable>(_ value: T, _ text: String) async throws {
    #expect(try await stored(value) == text)
    let ref = Database.inMemory().reference()
    try await ref.setValue(from: value)
    #expect(try await ref.getData(as: T.self) == value)
    let objects = try Database.Encoder().encode(value)
    #expect(try Database.Decoder().decode(T.self, from: objects) == value)
  }

  // MARK: Collections

  @Test("arrays and dictionaries")
  func collections() async throws {
    try await check([1, 2, 3], "{0:1,1:2,2:3}")
    try await check([[1], [2, 3]], "{0:{0:1},1:{0:2,1:3}}")
    try await check(["a": ["b": [true]]], "{a:{b:{0:true}}}")
    try await check([1: "a", 20: "b", -3: "c"], "{-3:\"c\",1:\"a\",20:\"b\"}")
    try await check([0: "a", 1: "b"], "{0:\"a\",1:\"b\"}")
    try await check(Set([7]), "{0:7}")
    try await check([5: Set(["x"])], "{5:{0:\"x\"}}")
    let odd = [UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F")!: 1]
    try await check(odd, "{0:\"E621E1F8-C36C-495A-93FC-0C247A3E6E5F\",1:1}")
  }

  @Test("arrays that come back as dictionaries, and the other way round")
  func coercion() async throws {
    // Sparse in the tree, which `value` shows as a dictionary.
    #expect(try await loaded([String?].self, ["2": "c"]) == [nil, nil, "c"])
    #expect(
      try await loaded([String?].self, ["0": "a", "5": "f"]) == ["a", nil, nil, nil, nil, "f"])
    #expect(await refusal([String].self, ["2": "c"]) == "valueNotFound [0]")
    #expect(await refusal([String].self, ["0": "a", "2": "c"]) == "valueNotFound [1]")
    // Dense, which `value` shows as an array.
    #expect(try await loaded([Int: String].self, ["0": "a", "1": "b"]) == [0: "a", 1: "b"])
    #expect(try await loaded([String: String].self, ["0": "a", "1": "b"]) == ["0": "a", "1": "b"])
    #expect(try await loaded([Int: String].self, ["1": "a", "2": "b"]) == [1: "a", 2: "b"])
    #expect(try await loaded([String: Int].self, [nil, 1, 2, 3]) == ["1": 1, "2": 2, "3": 3])
    #expect(try await loaded([Int: [Int]].self, [[1, 2], [3]]) == [0: [1, 2], 1: [3]])
    struct Numbered: Codable, Equatable {
      var zero: Int
      var one: Int?
      enum CodingKeys: String, CodingKey {
        case zero = "0"
        case one = "1"
      }
    }
    #expect(try await loaded(Numbered.self, [5]) == Numbered(zero: 5))
    #expect(try await loaded(Numbered.self, [5, 6]) == Numbered(zero: 5, one: 6))
  }

  @Test("one high key does not make an endless array")
  func endless() async throws {
    #expect(await refusal([Int?].self, ["2147483647": 1]) == "dataCorrupted ")
    #expect(await refusal([Int?].self, ["1025": 1]) == "dataCorrupted ")
    #expect(try await loaded([Int?].self, ["1024": 1]).count == 1025)
    let many = Dictionary(uniqueKeysWithValues: (2000..<4000).map { (String($0), 1) })
    #expect(try await loaded([Int?].self, many).count == 4000)
    #expect(
      place(thrown { _ = try Database.Decoder().decode([Int?].self, from: [String(Int.max): 1]) })
        == "dataCorrupted ")
  }

  // MARK: Enums

  enum Color: String, Codable { case red, green }
  enum Level: Int, Codable { case low = 1, high }
  enum Shape: Codable, Equatable {
    case point
    case circle(radius: Double)
    case line(Int, Int)
    indirect case group([Shape], named: String?)
  }

  @Test("enums")
  func enums() async throws {
    try await check(Color.green, "\"green\"")
    try await check(Level.high, "2")
    try await check([Color.red: 1], "{0:\"red\",1:1}")
    try await check(Shape.circle(radius: 2), "{circle:{radius:2.0}}")
    try await check(Shape.line(1, 2), "{line:{_0:1,_1:2}}")
    try await check(
      Shape.group([.circle(radius: 1), .line(3, 4)], named: nil),
      "{group:{_0:{0:{circle:{radius:1.0}},1:{line:{_0:3,_1:4}}}}}")
    #expect(await refusal(Color.self, "blue") == "dataCorrupted ")
    #expect(await refusal([Level].self, [1, 3]) == "dataCorrupted [1]")
    #expect(await refusal(Shape.self, ["square": 1]) == "typeMismatch ")
    // A case without values would be an empty dictionary, which the tree does not hold.
    try await check(Shape.point, "{point:true}")
  }

  // MARK: Containers by hand

  /// Uses every kind of container.
  struct Manual: Codable, Equatable {
    var number: Int
    var text: String
    var rows: [[Int]]
    var rest: [String]

    enum Keys: String, CodingKey { case inner, list, superior, tail }
    enum Inner: String, CodingKey { case number, text }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      // The same container, asked for twice.
      var first = container.nestedContainer(keyedBy: Inner.self, forKey: .inner)
      try first.encode(number, forKey: .number)
      var second = container.nestedContainer(keyedBy: Inner.self, forKey: .inner)
      try second.encode(text, forKey: .text)
      #expect(second.codingPath.map(\.stringValue).last == "inner")
      var list = container.nestedUnkeyedContainer(forKey: .list)
      for row in rows {
        var nested = list.nestedUnkeyedContainer()
        for number in row { try nested.encode(number) }
        #expect(nested.count == row.count)
      }
      var keyed = list.nestedContainer(keyedBy: Inner.self)
      try keyed.encodeNil(forKey: .number)
      try keyed.encode("end", forKey: .text)
      try list.encodeNil()
      try number.encode(to: list.superEncoder())
      #expect(list.count == rows.count + 3)
      try text.encode(to: container.superEncoder(forKey: .superior))
      var tail = container.superEncoder().unkeyedContainer()
      try tail.encode(contentsOf: rest)
    }

    init(number: Int, text: String, rows: [[Int]], rest: [String]) {
      (self.number, self.text, self.rows, self.rest) = (number, text, rows, rest)
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      let inner = try container.nestedContainer(keyedBy: Inner.self, forKey: .inner)
      number = try inner.decode(Int.self, forKey: .number)
      text = try String(from: container.superDecoder(forKey: .superior))
      #expect(inner.contains(.text))
      #expect(try inner.decode(String.self, forKey: .text) == text)
      var list = try container.nestedUnkeyedContainer(forKey: .list)
      rows = []
      while true {
        let before = list.currentIndex
        guard var row = try? list.nestedUnkeyedContainer() else {
          #expect(list.currentIndex == before, "what fails does not move on")
          break
        }
        rows.append([])
        while !row.isAtEnd { rows[rows.count - 1].append(try row.decode(Int.self)) }
      }
      let keyed = try list.nestedContainer(keyedBy: Inner.self)
      #expect(try keyed.decodeNil(forKey: .number))
      #expect(try keyed.decode(String.self, forKey: .text) == "end")
      #expect(try list.decodeNil())
      #expect(try Int(from: list.superDecoder()) == number)
      rest = try [String](from: container.superDecoder())
    }
  }

  @Test("nested containers and super encoders")
  func containers() async throws {
    try await check(
      Manual(number: 7, text: "t", rows: [[1, 2], [3]], rest: ["x", "y"]),
      "{inner:{number:7,text:\"t\"},list:{0:{0:1,1:2},1:{0:3},2:{text:\"end\"},4:7},"
        + "super:{0:\"x\",1:\"y\"},superior:\"t\"}")
  }

  class Animal: Codable {
    var legs: Int

    init(legs: Int) { self.legs = legs }
  }

  /// Keeps the superclass's part under "super".
  final class Dog: Animal {
    var name: String

    init(name: String) {
      self.name = name
      super.init(legs: 4)
    }

    enum CodingKeys: CodingKey { case name }

    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      name = try container.decode(String.self, forKey: .name)
      try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(name, forKey: .name)
      try super.encode(to: container.superEncoder())
    }
  }

  /// Shares one dictionary with the superclass.
  final class Cat: Animal {
    var lives = 9

    init() { super.init(legs: 4) }

    enum CodingKeys: CodingKey { case lives }

    required init(from decoder: any Decoder) throws {
      lives = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .lives)
      try super.init(from: decoder)
    }

    override func encode(to encoder: any Encoder) throws {
      try super.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(lives, forKey: .lives)
    }
  }

  @Test("class inheritance")
  func inheritance() async throws {
    #expect(try await stored(Dog(name: "Rex")) == "{name:\"Rex\",super:{legs:4}}")
    #expect(try await stored([Cat()]) == "{0:{legs:4,lives:9}}")
    let ref = Database.inMemory().reference()
    try await ref.child("dog").setValue(from: Dog(name: "Rex"))
    try await ref.child("cat").setValue(from: Cat())
    let dog = try await ref.child("dog").getData(as: Dog.self)
    #expect(dog.name == "Rex" && dog.legs == 4)
    let cat = try await ref.child("cat").getData(as: Cat.self)
    #expect(cat.lives == 9 && cat.legs == 4)
  }
}
