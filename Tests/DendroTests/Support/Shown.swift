import Foundation

/// Values as one line of text that distinguishes the types: `true`, `1`, `1.0`, `"1"`, `null`; keys sorted.
func shown(_ value: Any?) -> String {
  guard let value else { return "nil" }
  switch value {
  case is NSNull: return "null"
  case let text as String: return "\"\(text)\""
  case let number as NSNumber:
    switch UInt8(bitPattern: number.objCType[0]) {
    case UInt8(ascii: "c"), UInt8(ascii: "B"): return number.boolValue ? "true" : "false"
    case UInt8(ascii: "d"), UInt8(ascii: "f"): return "\(number.doubleValue)"
    default: return "\(number.int64Value)"
    }
  case let dictionary as [String: Any]:
    let entries = dictionary.sorted { Array($0.key.utf8).lexicographicallyPrecedes($1.key.utf8) }
    return "{" + entries.map { "\($0.key):\(shown($0.value))" }.joined(separator: ",") + "}"
  case let array as [Any]: return "[" + array.map { shown($0) }.joined(separator: ",") + "]"
  default: return "?\(type(of: value))"
  }
}
