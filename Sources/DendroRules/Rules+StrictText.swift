import DendroTree

extension Rules {
  /// The text as JSON by RFC 8259: without comments, and without what else only rules may have.
  public var strictText: String {
    var bytes: [UInt8] = []
    do throws(TextFailure) {
      Self.append(try TextParser.parse(Array(text.utf8), .lenient), to: &bytes, depth: 0)
    } catch {
      preconditionFailure("the text was parsed before: \(error)")
    }
    bytes.append(UInt8(ascii: "\n"))
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func append(_ value: TextValue, to bytes: inout [UInt8], depth: Int) {
    switch value.kind {
    case .null: bytes += "null".utf8
    case .boolean(let value): bytes += (value ? "true" : "false").utf8
    case .number(let spelling): bytes += spelling.utf8
    case .string(let string): append(string, to: &bytes)
    case .array(let values):
      append(values, "[", "]", to: &bytes, depth) { append($0, to: &$1, depth: depth + 1) }
    case .object(let members):
      append(members, "{", "}", to: &bytes, depth) { member, bytes in
        append(member.name, to: &bytes)
        bytes += ": ".utf8
        append(member.value, to: &bytes, depth: depth + 1)
      }
    }
  }

  private static func append<Element>(
    _ elements: [Element], _ open: String, _ close: String, to bytes: inout [UInt8], _ depth: Int,
    _ append: (Element, inout [UInt8]) -> Void
  ) {
    func appendLine(_ depth: Int) {
      bytes.append(UInt8(ascii: "\n"))
      bytes += repeatElement(UInt8(ascii: " "), count: 2 * depth)
    }
    bytes += open.utf8
    for (index, element) in elements.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      appendLine(depth + 1)
      append(element, &bytes)
    }
    if !elements.isEmpty { appendLine(depth) }
    bytes += close.utf8
  }

  private static func append(_ string: TextString, to bytes: inout [UInt8]) {
    JSONText.append(string: string.text, to: &bytes)
  }
}
