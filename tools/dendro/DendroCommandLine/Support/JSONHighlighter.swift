/// Colours JSON text, which may come in pieces: keys, strings, numbers and words apart.
struct JSONHighlighter {
  private enum State {
    case between
    case string(isKey: Bool, isEscaped: Bool)
    case word
  }

  private var state = State.between
  /// Whether each open container is an object.
  private var containers: [Bool] = []
  /// Whether the next string in the innermost object is a key.
  private var expectsKey = false

  private static let reset = Array("\u{1B}[0m".utf8)

  private static func start(_ color: Terminal.Color) -> [UInt8] {
    Array("\u{1B}[\(color.rawValue)m".utf8)
  }

  mutating func colored(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    var output: [UInt8] = []
    for byte in bytes { take(byte, &output) }
    return output
  }

  private mutating func take(_ byte: UInt8, _ output: inout [UInt8]) {
    switch state {
    case .string(let isKey, let isEscaped):
      output.append(byte)
      if isEscaped {
        state = .string(isKey: isKey, isEscaped: false)
      } else if byte == UInt8(ascii: "\\") {
        state = .string(isKey: isKey, isEscaped: true)
      } else if byte == UInt8(ascii: "\"") {
        output += Self.reset
        state = .between
      }
      return
    case .word:
      if Self.isWord(byte) { return output.append(byte) }
      output += Self.reset
      state = .between
    case .between: break
    }
    switch byte {
    case UInt8(ascii: "{"):
      containers.append(true)
      expectsKey = true
    case UInt8(ascii: "["):
      containers.append(false)
      expectsKey = false
    case UInt8(ascii: "}"), UInt8(ascii: "]"): containers.removeLast(containers.isEmpty ? 0 : 1)
    case UInt8(ascii: ","): expectsKey = containers.last ?? false
    case UInt8(ascii: "\""):
      output += Self.start(expectsKey ? .cyan : .green)
      state = .string(isKey: expectsKey, isEscaped: false)
      expectsKey = false
    case _ where Self.isWord(byte):
      let isNumber = byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte)
      output += Self.start(isNumber ? .yellow : .blue)
      state = .word
    default: break
    }
    output.append(byte)
  }

  /// The end of the text: what is open is closed.
  mutating func finish() -> [UInt8] {
    defer { state = .between }
    if case .between = state { return [] }
    return Self.reset
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
      || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") || byte == UInt8(ascii: ".")
  }
}
