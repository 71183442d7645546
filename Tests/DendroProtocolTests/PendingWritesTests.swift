import DendroTestSupport
import DendroTree
import Testing

@testable import DendroProtocol

@Suite("keeping in step with a server: pending writes")
struct PendingWritesTests {
  @Test(
    "what is left of the writes is what they make by themselves, whichever are answered first",
    arguments: Scale.seeds(40))
  func removal(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var pending = PendingWrites()
    var left: [(number: Int, write: PendingWrites.Write)] = []
    // Mostly the oldest is answered first; some seeds take any.
    let takesAny = seed.isMultiple(of: 3)
    for number in 0..<300 {
      if left.count < 12, !generator.oneIn(3) || left.isEmpty {
        let write = try Self.write(&generator)
        pending.append(write, number: number)
        left.append((number, write))
      } else {
        let index = takesAny || generator.oneIn(10) ? generator.below(left.count) : 0
        let (taken, write) = left.remove(at: index)
        let wasSeen = pending.remove(number: taken) != nil
        let isCovered = left.contains { Self.covers($0.write, write) && $0.number > taken }
        #expect(wasSeen == (write.isVisible && !isCovered), "seed \(seed), write \(taken)")
      }
      var fresh = WriteLayer()
      for entry in left.filter(\.write.isVisible).flatMap({ one in
        one.write.entries.map { PendingWrites.Entry($0.place.below(one.write.path), $0.node) }
      }) {
        fresh.put(entry.node, at: entry.place)
      }
      for base in try Self.bases() {
        #expect(
          pending.layer.applied(to: base) == fresh.applied(to: base), "seed \(seed), \(number)")
        #expect(pending.layer.knownChildren(over: base) == fresh.knownChildren(over: base))
      }
      for _ in 0..<5 {
        let place = try Self.place(&generator)
        #expect(pending.layer.covering(place) == fresh.covering(place), "seed \(seed), \(number)")
      }
      try Self.check(pending.layer)
    }
    for (number, _) in left { _ = pending.remove(number: number) }
    #expect(pending.isEmpty && pending.layer.isEmpty)
  }

  private static func covers(_ write: PendingWrites.Write, _ other: PendingWrites.Write) -> Bool {
    guard write.isVisible else { return false }
    return write.entries.contains { entry in
      let place = entry.place.below(write.path)
      return place.isPriority
        ? place == other.place : place.path.isPrefix(of: other.place.path)
    }
  }

  /// Whether the layer is as it says it is.
  private static func check(_ layer: WriteLayer) throws {
    if layer.whole != nil { #expect(layer.priority == nil && layer.children.isEmpty) }
    #expect(layer.parts == Set(layer.children.filter { $0.value.whole == nil }.keys))
    for (_, child) in layer.children {
      #expect(!child.isEmpty)
      try check(child)
    }
  }

  // MARK: Made at random

  private static func bases() throws -> [Node] {
    [.empty, try json("{\"a\":{\"a\":1,\"b\":{\"a\":2}},\"b\":3,\".priority\":4}"), try json("5")]
  }

  private static func path(_ generator: inout SeededGenerator, _ depth: Int) throws -> Path {
    var path = Path.root
    for _ in 0..<generator.below(depth + 1) {
      path = path.appending(try Key(["a", "b", "1"][generator.below(3)]))
    }
    return path
  }

  private static func place(_ generator: inout SeededGenerator) throws -> DataPlace {
    DataPlace(try path(&generator, 4), isPriority: generator.oneIn(6))
  }

  private static func node(_ generator: inout SeededGenerator) throws -> Node {
    let texts = [
      "null", "1", "\"x\"", "{\"a\":1}", "{\"a\":{\"b\":2},\"1\":3}",
      "{\"b\":true,\".priority\":1}",
    ]
    return try json(texts[generator.below(texts.count)])
  }

  private static func write(_ generator: inout SeededGenerator) throws -> PendingWrites.Write {
    guard generator.oneIn(3) else {
      let place = try place(&generator)
      let node = place.isPriority ? Node(.integer(7)) : try node(&generator)
      return PendingWrites.Write(setting: place, node, isVisible: !generator.oneIn(8))
    }
    var entries: [PendingWrites.Entry] = []
    for _ in 0...generator.below(3) {
      let path = try path(&generator, 3)
      guard !path.isRoot, !entries.contains(where: { overlap($0.place.path, path) }) else {
        continue
      }
      entries.append(PendingWrites.Entry(DataPlace(path), try node(&generator)))
    }
    return PendingWrites.Write(updating: try path(&generator, 2), entries)
  }

  private static func overlap(_ a: Path, _ b: Path) -> Bool {
    a.isPrefix(of: b) || b.isPrefix(of: a)
  }
}
