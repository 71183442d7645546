import DendroTestSupport

@testable import DendroTree

/// Documents out of a seed.
struct JSONGenerator {
  private var random: SeededGenerator

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func next() -> UInt64 { random.next() }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  mutating func scalar() -> Scalar {
    switch below(10) {
    case 0: return .bool(next() & 1 == 0)
    case 1: return .integer(Int64(bitPattern: next()))
    case 2: return .integer(Int64(below(200)) - 100)
    case 3: return .double(finite(Double(bitPattern: next())))
    case 4: return .double(Double(below(2_000_000)) / 1000)
    case 5: return .double(Double(Int64(bitPattern: next())))
    default: return .string(string())
    }
  }

  private func finite(_ value: Double) -> Double { value.isFinite ? value : 0.1 }

  mutating func string() -> String {
    let alphabets: [[Unicode.Scalar]] = [
      Array("abcdefghijklmnop 0123456789".unicodeScalars),
      Array("\"\\/\u{8}\u{C}\n\r\t\u{0}\u{1F}\u{7F}ab".unicodeScalars),
      Array("aé漢😀\u{E000}\u{FFFF}\u{10FFFF}e\u{301}".unicodeScalars),
    ]
    let alphabet = alphabets[below(alphabets.count)]
    var string = ""
    for _ in 0..<below(below(8) == 0 ? 200 : 20) {
      string.unicodeScalars.append(alphabet[below(alphabet.count)])
    }
    return string
  }

  mutating func key() -> Key {
    let texts = ["a", "b", "c", "name", "é", "漢", "😀", "\u{E000}", "\"", "\\", "-1", "01", "x y"]
    let text: String
    switch below(3) {
    case 0: text = texts[below(texts.count)]
    case 1: text = String(below(12))
    default: text = "k\(below(1000))"
    }
    do { return try Key(text) } catch { fatalError("\(error)") }
  }

  mutating func node(levels: Int, width: Int = 8) -> Node {
    let priority: Scalar? =
      switch below(12) {
      case 0: .integer(Int64(below(100)))
      case 1: .string(string())
      default: nil
      }
    guard levels > 0, below(4) > 0 else { return Node(scalar(), priority: priority) }
    var builder = NodeBuilder()
    let isArray = below(4) == 0
    for index in 0..<(1 + below(width)) {
      let child = node(levels: levels - 1, width: width)
      if isArray, below(4) > 0 {
        builder.append(Key(index: index), child)
      } else if !isArray {
        builder.append(key(), child)
      }
    }
    return builder.finish(priority: priority)
  }
}

extension Node {
  func json(_ form: JSONStyle.Form = .export, isPretty: Bool = false) -> String {
    JSONWriter.string(self, style: JSONStyle(form, isPretty: isPretty))
  }
}

/// A whole text read through the streaming form, its pieces applied as writes.
func parseInPieces(
  _ bytes: [UInt8], depth: Int = 0, pieceBytes: Int, bufferBytes: Int = 1,
  portion: @escaping () -> Int = { 1 << 20 }, onPiece: @escaping (JSONPiece) -> Void = { _ in }
) throws -> Node {
  final class State {
    var offset = 0
    var root = Node.empty
  }
  let state = State()
  try JSONParser.parse(
    depth: depth, pieceBytes: pieceBytes, bufferBytes: bufferBytes,
    source: { buffer in
      let count = min(buffer.count, bytes.count - state.offset, max(1, portion()))
      buffer.copyBytes(from: bytes[state.offset..<state.offset + count])
      state.offset += count
      return count
    },
    yield: { piece in
      onPiece(piece)
      switch piece.content {
      case .node(let node) where node.isEmpty: _ = state.root.apply(.remove(piece.path))
      case .node(let node): _ = state.root.apply(.set(piece.path, node))
      case .priority(let priority): _ = state.root.apply(.setPriority(piece.path, priority))
      }
    })
  return state.root
}
