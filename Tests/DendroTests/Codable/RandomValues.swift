import Dendro
import DendroTestSupport
import Foundation

/// A type of which random values can be made. Of such types random ones are composed.
protocol RandomValue: Codable, Hashable, Sendable {
  init(random: inout SeededGenerator)
}

/// A random type: up to four of the types with parameters around one without.
func randomType(_ random: inout SeededGenerator) -> any RandomValue.Type {
  let plain: [any RandomValue.Type] = [
    Bool.self, Int.self, Int8.self, Int64.self, UInt64.self, UInt.self, Double.self, Float.self,
    String.self, Data.self, URL.self, UUID.self, Decimal.self, Date.self, Color.self, Shape.self,
    Loose.self, Derived.self,
  ]
  var type = plain[random.below(plain.count)]
  for _ in 0..<random.below(5) { type = wrapped(type, random.below(12)) }
  return type
}

private func wrapped<T: RandomValue>(_ type: T.Type, _ kind: Int) -> any RandomValue.Type {
  switch kind {
  case 0: T?.self
  case 1, 2: [T].self
  case 3: Set<T>.self
  case 4: [String: T].self
  case 5: [Int: T].self
  case 6: [Color: T].self
  case 7: [T: Int].self
  case 8: Record<T>.self
  case 9: Choice<T>.self
  case 10: Wrapper<T>.self
  default: Heir<T>.self
  }
}

// MARK: Plain types

extension Bool: RandomValue { init(random: inout SeededGenerator) { self = random.oneIn(2) } }

extension FixedWidthInteger {
  fileprivate static func random(_ random: inout SeededGenerator) -> Self {
    switch random.below(6) {
    case 0: .min
    case 1: .max
    case 2: 0
    default: Self(truncatingIfNeeded: random.next() >> random.below(64))
    }
  }
}

extension Int: RandomValue { init(random: inout SeededGenerator) { self = .random(&random) } }
extension Int8: RandomValue { init(random: inout SeededGenerator) { self = .random(&random) } }
extension Int64: RandomValue { init(random: inout SeededGenerator) { self = .random(&random) } }
extension UInt64: RandomValue { init(random: inout SeededGenerator) { self = .random(&random) } }
extension UInt: RandomValue { init(random: inout SeededGenerator) { self = .random(&random) } }

extension Double: RandomValue {
  init(random: inout SeededGenerator) {
    let bits = Double(bitPattern: random.next())
    self = random.oneIn(2) ? Double(random.below(1000)) / 8 : bits.isFinite ? bits : -0.5
  }
}

extension Float: RandomValue {
  init(random: inout SeededGenerator) {
    let bits = Float(bitPattern: UInt32(truncatingIfNeeded: random.next()))
    self = bits.isFinite ? bits : .greatestFiniteMagnitude
  }
}

extension String: RandomValue {
  init(random: inout SeededGenerator) {
    let texts = ["", "a", "b", "é", "e\u{301}", "😀", "k k", "12", "0", "\u{0}", "a/b", "true"]
    self = texts[random.below(texts.count)]
  }
}

extension Data: RandomValue {
  init(random: inout SeededGenerator) {
    self.init((0..<random.below(5)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
  }
}

extension URL: RandomValue {
  init(random: inout SeededGenerator) {
    self = URL(string: "https://example.org/\(random.below(9))?q=a%20b#c") ?? URL(filePath: "/")
  }
}

extension UUID: RandomValue {
  init(random: inout SeededGenerator) {
    let bytes = (0..<16).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    self = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}

extension Decimal: RandomValue {
  init(random: inout SeededGenerator) {
    let digits = Int64(truncatingIfNeeded: random.next()) >> Int64(random.below(64))
    self = Decimal(digits) / [1, 10, 100, 8, 1_000_000][random.below(5)]
  }
}

extension Date: RandomValue {
  init(random: inout SeededGenerator) {
    self.init(timeIntervalSinceReferenceDate: Double(random.below(1_000_000_000)) / 8)
  }
}

enum Color: String, RandomValue, CaseIterable, CodingKeyRepresentable {
  case red, green, blue
  init(random: inout SeededGenerator) { self = Self.allCases[random.below(3)] }
}

enum Shape: RandomValue {
  case none
  case point(Int, y: Double?)
  case group([String])
  init(random: inout SeededGenerator) {
    switch random.below(3) {
    case 0: self = .none
    case 1: self = .point(Int(random: &random), y: random.oneIn(2) ? nil : 0.5)
    default: self = .group(random.oneIn(2) ? [] : [String(random: &random)])
    }
  }
}

/// All of its properties may be nothing.
struct Loose: RandomValue {
  var number: Int?
  var texts: [String]
  var byName: [String: Bool]
  init(random: inout SeededGenerator) {
    number = random.oneIn(2) ? nil : random.below(9)
    texts = random.oneIn(2) ? [] : ["x"]
    byName = random.oneIn(2) ? [:] : ["y": true]
  }
}

// MARK: Types with parameters

extension Optional: RandomValue where Wrapped: RandomValue {
  init(random: inout SeededGenerator) { self = random.oneIn(3) ? nil : Wrapped(random: &random) }
}

extension Array: RandomValue where Element: RandomValue {
  init(random: inout SeededGenerator) {
    self = []
    for _ in 0..<random.below(4) { append(Element(random: &random)) }
  }
}

extension Set: RandomValue where Element: RandomValue {
  init(random: inout SeededGenerator) { self.init([Element](random: &random)) }
}

extension Dictionary: RandomValue where Key: RandomValue, Value: RandomValue {
  init(random: inout SeededGenerator) {
    self.init()
    for _ in 0..<random.below(4) { self[Key(random: &random)] = Value(random: &random) }
  }
}

struct Record<T: RandomValue>: RandomValue {
  var value: T
  var optional: T?
  var list: [T]
  var nested: Inner
  struct Inner: Codable, Hashable {
    var value: T?
    var name: String
  }
  init(random: inout SeededGenerator) {
    value = T(random: &random)
    optional = T?(random: &random)
    list = [T](random: &random)
    nested = Inner(value: T?(random: &random), name: String(random: &random))
  }
}

indirect enum Choice<T: RandomValue>: RandomValue {
  case nothing
  case one(T)
  case named(value: T, other: T?)
  case deeper(Choice<T>)
  init(random: inout SeededGenerator) {
    switch random.below(5) {
    case 0: self = .nothing
    case 1, 2: self = .one(T(random: &random))
    case 3: self = .named(value: T(random: &random), other: T?(random: &random))
    default: self = .deeper(Choice(random: &random))
    }
  }
}

/// Is encoded as what it holds.
struct Wrapper<T: RandomValue>: RandomValue {
  var value: T
  init(random: inout SeededGenerator) { value = T(random: &random) }
  init(from decoder: any Decoder) throws {
    value = try decoder.singleValueContainer().decode(T.self)
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(value)
  }
}

class Base: Codable, @unchecked Sendable {
  let number: Int?
  let list: [Int]
  init(_ random: inout SeededGenerator) {
    number = random.oneIn(2) ? nil : random.below(9)
    list = random.oneIn(2) ? [] : [1, 2]
  }
}

final class Derived: Base, RandomValue, @unchecked Sendable {
  private enum CodingKeys: CodingKey { case name }
  let name: String?
  init(random: inout SeededGenerator) {
    name = random.oneIn(2) ? nil : String(random: &random)
    super.init(&random)
  }
  required init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    name = try container.decodeIfPresent(String.self, forKey: .name)
    try super.init(from: container.superDecoder())
  }
  override func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(name, forKey: .name)
    try super.encode(to: container.superEncoder())
  }
  static func == (a: Derived, b: Derived) -> Bool {
    a.name == b.name && a.number == b.number && a.list == b.list
  }
  func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// Its superclass's properties are beside its own.
final class Heir<T: RandomValue>: Base, RandomValue, @unchecked Sendable {
  private enum CodingKeys: CodingKey { case value }
  let value: T
  init(random: inout SeededGenerator) {
    value = T(random: &random)
    super.init(&random)
  }
  required init(from decoder: any Decoder) throws {
    value = try decoder.container(keyedBy: CodingKeys.self).decode(T.self, forKey: .value)
    try super.init(from: decoder)
  }
  override func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(value, forKey: .value)
    try super.encode(to: encoder)
  }
  static func == (a: Heir, b: Heir) -> Bool {
    a.value == b.value && a.number == b.number && a.list == b.list
  }
  func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

// MARK: Dates

enum DateStrategy: CaseIterable {
  case deferred, seconds, milliseconds, iso8601

  var coders: (Database.Encoder, Database.Decoder) {
    let (encoder, decoder) = (Database.Encoder(), Database.Decoder())
    switch self {
    case .deferred: break
    case .seconds:
      (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) =
        (.secondsSince1970, .secondsSince1970)
    case .milliseconds:
      (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) =
        (.millisecondsSince1970, .millisecondsSince1970)
    case .iso8601:
      (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.iso8601, .iso8601)
    }
    return (encoder, decoder)
  }

  /// Whether Foundation's coders give back an equal value.
  func keeps<T: Codable & Equatable>(_ value: T) -> Bool {
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    switch self {
    case .deferred: break
    case .seconds:
      (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) =
        (.secondsSince1970, .secondsSince1970)
    case .milliseconds:
      (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) =
        (.millisecondsSince1970, .millisecondsSince1970)
    case .iso8601:
      (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.iso8601, .iso8601)
    }
    guard let json = try? encoder.encode(value),
      let found = try? decoder.decode(T.self, from: json)
    else { return false }
    return found == value
  }
}
