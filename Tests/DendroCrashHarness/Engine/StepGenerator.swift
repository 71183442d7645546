import DendroTesting
package import DendroTree
import DendroTestSupport

/// Draws workloads: few keys, so that writes meet; every kind of write and of value.
package struct StepGenerator {
  private var random: SeededRandomness
  /// Every fourth seed draws from the richer writes that the tree is tested with.
  private var rich: WriteGenerator?

  package init(seed: UInt64) {
    random = SeededRandomness(seed: seed)
    guard seed % 4 == 3 else { return }
    var generator = WriteGenerator(seed: seed)
    generator.wideOneIn = 20
    rich = generator
  }

  /// A workload of that many steps or a few more, mostly writes.
  package mutating func steps(_ count: Int, kills: Bool = true) -> [Step] {
    (0..<count).map { _ in
      switch draw(40) {
      case 0..<24: .write([write()])
      case 24..<30: .write((0...draw(4)).map { _ in write() })
      case 30, 31: .synchronize
      case 32, 33: .checkpoint
      case 34: .roll
      case 35..<38: .close
      default: kills ? .kill(call: draw(40) + 1, bytes: draw(150)) : .close
      }
    }
  }

  package mutating func write() -> Write {
    if let write = rich?.write() { return write }
    return switch draw(10) {
    case 0..<4: .set(path(), node(2))
    case 4..<7: .update(draw(3) == 0 ? path() : .root, entries())
    case 7: .remove(path())
    case 8: .increment(path(), number())
    default: .setPriority(path(), draw(3) == 0 ? nil : .integer(Int64(draw(5))))
    }
  }

  private mutating func entries() -> [Write.Entry] {
    // Distinct first keys: no path is an ancestor of another.
    Array(["a", "b", "posts", "7"].shuffled(using: &random).prefix(draw(3) + 1)).map { first in
      let path = Path(draw(2) == 0 ? first : "\(first)/\(name())")
      return switch draw(6) {
      case 0: Write.Entry(path: path, action: .remove)
      case 1, 2: Write.Entry(path: path, action: .increment(number()))
      default: Write.Entry(path: path, action: .set(node(1)))
      }
    }
  }

  private mutating func path() -> Path {
    Path((0...draw(3)).map { _ in name() }.joined(separator: "/"))
  }

  private mutating func name() -> String {
    ["a", "b", "posts", "7", "-3", "é", "text"][draw(7)]
  }

  private mutating func number() -> Number {
    draw(3) == 0 ? .double(Double(draw(100)) / 8) : .integer(Int64(draw(1000)) - 500)
  }

  private mutating func node(_ depth: Int) -> Node {
    if depth > 0, draw(3) == 0 {
      var builder = NodeBuilder()
      for name in ["a", "b", "7", "text"].prefix(draw(4) + 1) {
        builder.append(Key(of: name), node(depth - 1))
      }
      return builder.finish(priority: draw(4) == 0 ? .string("p") : nil)
    }
    return Node(scalar(), priority: draw(8) == 0 ? .double(Double(draw(9)) / 2) : nil)
  }

  private mutating func scalar() -> Scalar {
    switch draw(12) {
    case 0: .bool(draw(2) == 0)
    case 1, 2: .integer(Int64(draw(10)))
    case 3: .integer(Int64(bitPattern: random.next()))
    case 4: .double(Double(draw(1000)) / 16)
    case 5: .string(String(repeating: "a long value, again and again; ", count: draw(60)))
    default: .string(["", "leaf", "über", "🌲", "the same words", "other words"][draw(6)])
    }
  }

  private mutating func draw(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
}
