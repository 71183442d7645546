import Dendro
import Foundation
import DendroTestSupport
import Testing

extension CodableShapeTests {
  // MARK: Random shapes

  /// Random data, encoded through random kinds of containers.
  indirect enum Tree: Codable, Equatable {
    case null, bool(Bool), int(Int64), double(Double), string(String)
    case array([Tree]), dictionary([String: Tree])

    init(_ random: inout SeededGenerator, depth: Int = 0) {
      switch random.below(depth > 4 ? 5 : 8) {
      case 0: self = .null
      case 1: self = .bool(random.oneIn(2))
      // 53 bits, which Foundation's JSON reads without loss.
      case 2: self = .int(Int64(bitPattern: random.next()) >> Int64(11 + random.below(53)))
      case 3: self = .double(Double(random.below(1000)) / 8 + 0.0625)
      case 4: self = .string(["", "x", "é", "e\u{301}", "😀"][random.below(5)])
      case 5: self = .array((0..<random.below(6)).map { _ in Tree(&random, depth: depth + 1) })
      default:
        let keys = ["a", "b", "10", "9", "0", "1", "é", "😀", "-3", "k k"].shuffled(using: &random)
        self = .dictionary(
          Dictionary(
            uniqueKeysWithValues: keys.prefix(random.below(6)).map {
              ($0, Tree(&random, depth: depth + 1))
            }))
      }
    }

    func encode(to encoder: any Encoder) throws {
      switch self {
      case .array(let elements):
        var container = encoder.unkeyedContainer()
        for element in elements {
          switch element {
          case .null: try container.encodeNil()
          case .array where container.count % 2 == 0:
            try element.encode(to: container.superEncoder())
          case .dictionary(let values) where container.count % 2 == 1:
            var nested = container.nestedContainer(keyedBy: TextKey.self)
            for (key, value) in values { try nested.encode(value, forKey: TextKey(key)) }
          default: try container.encode(element)
          }
        }
      case .dictionary(let values):
        var container = encoder.container(keyedBy: TextKey.self)
        for (key, value) in values {
          if case .array(let elements) = value, key < "a" {
            var nested = container.nestedUnkeyedContainer(forKey: TextKey(key))
            for element in elements { try nested.encode(element) }
          } else {
            try container.encode(value, forKey: TextKey(key))
          }
        }
      default:
        var container = encoder.singleValueContainer()
        switch self {
        case .bool(let value): try container.encode(value)
        case .int(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        default: try container.encodeNil()
        }
      }
    }

    /// Whether the tree keeps nothing of it.
    var isEmpty: Bool {
      switch self {
      case .null: true
      case .bool, .int, .double, .string: false
      case .array(let elements): elements.allSatisfy(\.isEmpty)
      case .dictionary(let values): values.values.allSatisfy(\.isEmpty)
      }
    }

    /// Whether a key or the end of an array is lost where it is set.
    var loses: Bool {
      switch self {
      case .null, .bool, .int, .double, .string: false
      case .array(let elements):
        // An enum that encodes itself as something empty would be read as its case for nothing. It is not known of one
        // that encodes itself into the container of another.
        elements.last?.isEmpty ?? false
          || elements.enumerated().contains { index, element in
            switch element {
            case .array: element.loses || element.isEmpty && index % 2 == 1
            case .dictionary: element.loses || element.isEmpty && index % 2 == 0
            default: false
            }
          }
      case .dictionary(let values): values.values.contains { $0.isEmpty || $0.loses }
      }
    }

    /// What it is as an `Any`.
    var object: Any {
      switch self {
      case .null: NSNull()
      case .bool(let value): value
      case .int(let value): value
      case .double(let value): value
      case .string(let value): value
      case .array(let elements): elements.map(\.object)
      case .dictionary(let values): values.mapValues(\.object)
      }
    }
  }

  @Test("any shape is the same data as its objects, and as JSON", arguments: 0..<40)
  func shapes(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let ref = Database.inMemory().reference()
    for round in 0..<40 {
      let tree = Tree(&random)
      if tree.loses || tree.isEmpty && tree != .null {
        let error = await failure { try await ref.child("coded").setValue(from: tree) }
        #expect(error?.code == .invalidData, "seed \(seed), round \(round)")
        continue
      }
      try await ref.child("coded").setValue(from: tree)
      try await ref.child("plain").setValue(tree.object)
      let coded = try await ref.child("coded").getData()
      let plain = try await ref.child("plain").getData()
      #expect(coded.typedValue == plain.typedValue, "seed \(seed), round \(round)")
      #expect(shown(coded.value) == shown(plain.value), "seed \(seed), round \(round)")
      #expect(shown(try Database.Encoder().encode(tree)) == shown(tree.object))
      let json = try JSONSerialization.jsonObject(
        with: JSONEncoder().encode(tree), options: .fragmentsAllowed)
      #expect(
        shown(json) == shown(tree.object), "seed \(seed), round \(round)")
      #expect(try coded.data(as: Database.Value.self) == coded.typedValue)
      #expect(
        try Database.Decoder().decode(Database.Value.self, from: coded.value as Any)
          == coded.typedValue)
      // As `Decodable` sees it with another decoder.
      let decoded = try JSONDecoder().decode(
        Database.Value.self, from: JSONEncoder().encode(coded.typedValue))
      #expect(decoded == coded.typedValue, "seed \(seed), round \(round)")
    }
  }

  struct Record: Codable, Equatable {
    var flag: Bool
    var count: Int
    var small: UInt8?
    var ratio: Double
    var thin: Float?
    var name: String
    var nick: String?
    var when: Date
    var blob: Data
    var link: URL?
    var price: Decimal?
    var color: Color
    var tags: [String]
    var votes: [String: Int]
    var byNumber: [Int: Double]
    var shape: Shape?
    var children: [Record]
    var pair: [Int]?

    init(_ random: inout SeededGenerator, depth: Int = 0) {
      flag = random.oneIn(2)
      count = Int(truncatingIfNeeded: random.next())
      small = random.oneIn(2) ? nil : UInt8(truncatingIfNeeded: random.next())
      ratio = Double.random(in: -1e9...1e9, using: &random)
      thin = random.oneIn(2) ? nil : Float.random(in: -1...1, using: &random)
      name = String((0..<random.below(5)).map { _ in "aé😀 ß".randomElement(using: &random)! })
      nick = random.oneIn(2) ? nil : name
      when = Date(timeIntervalSinceReferenceDate: Double.random(in: 0...1e9, using: &random))
      blob = Data((0..<random.below(9)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      link = random.oneIn(2) ? nil : URL(string: "https://example.org/\(random.below(99))")
      price = random.oneIn(2) ? nil : Decimal(random.below(100_000)) / 100
      color = random.oneIn(2) ? .red : .green
      tags = (0..<random.below(4)).map { "t\($0)" }
      votes = Dictionary(uniqueKeysWithValues: (0..<random.below(4)).map { ("k\($0)", $0) })
      byNumber = Dictionary(
        uniqueKeysWithValues: (0..<random.below(4)).map { ($0 * random.below(7) * 4 + $0, 0.5) })
      shape = random.oneIn(2) ? nil : .line(random.below(9), random.below(9))
      pair = random.oneIn(2) ? nil : [1, 2]
      let count = depth > 2 ? 0 : random.below(3)
      children = []
      for _ in 0..<count { children.append(Record(&random, depth: depth + 1)) }
    }
  }

  @Test("random records come back, with every choice of options", arguments: 0..<60)
  func records(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let encoder = Database.Encoder()
    let decoder = Database.Decoder()
    if random.oneIn(2) {
      encoder.keyEncodingStrategy = .convertToSnakeCase
      decoder.keyDecodingStrategy = .convertFromSnakeCase
    }
    if random.oneIn(2) {
      encoder.dataEncodingStrategy = .deferredToData
      decoder.dataDecodingStrategy = .deferredToData
    }
    let ref = Database.inMemory().reference()
    for round in 0..<10 {
      let record = Record(&random)
      try await ref.setValue(from: record, encoder: encoder)
      let snapshot = try await ref.getData()
      #expect(
        try snapshot.data(as: Record.self, decoder: decoder) == record,
        "seed \(seed), round \(round)")
      #expect(
        try decoder.decode(Record.self, from: snapshot.value as Any) == record,
        "seed \(seed), round \(round)")
      #expect(
        try decoder.decode(Record.self, from: encoder.encode(record)) == record,
        "seed \(seed), round \(round)")
    }
  }
}
