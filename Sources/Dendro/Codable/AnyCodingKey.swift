/// A key of any text or index, for paths and for dictionaries.
enum AnyCodingKey: CodingKey {
  case name(String)
  case integer(Int)
  /// The index of an element, as an error's coding path shows it.
  case index(Int)

  init(stringValue: String) { self = .name(stringValue) }

  init(intValue: Int) { self = .integer(intValue) }

  var stringValue: String {
    switch self {
    case .name(let name): name
    case .integer(let value): String(value)
    case .index(let index): "Index \(index)"
    }
  }

  var intValue: Int? {
    switch self {
    case .name: nil
    case .integer(let value), .index(let value): value
    }
  }

  /// The default key of the values that a superclass encodes.
  static let `super` = AnyCodingKey.name("super")
}
