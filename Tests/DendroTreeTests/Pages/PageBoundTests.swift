import DendroTree
import DendroTestSupport
import Testing

/// Entries of the most different sizes in one branch: pages stay within their bounds, whatever the
/// order in which leaves become branches and long ones come between short ones.
@Suite("Bounds of pages")
struct PageBoundTests {
  /// The shortest keys there are, in their order.
  private static let short: [String] = {
    let characters = (0x3A...0x7A).map { Character(Unicode.Scalar($0)) }
      .filter { !"[].#$/".contains($0) }
    return characters.flatMap { first in
      [String(first)] + characters.map { String([first, $0]) }
    }
  }()

  private static func branch(priority: Scalar?) throws -> Node {
    var node = Node.empty
    _ = node.apply(.set(Path(keys: [try Key("x")]), Node(.bool(true))))
    return node.settingPriority(priority)
  }

  private static func long(_ prefix: String) throws -> Key {
    try Key(prefix + String(repeating: "-", count: 768 - prefix.utf8.count))
  }

  @Test("a page of short leaves that gets its first branch", arguments: [false, true])
  func firstBranch(isLong: Bool) throws {
    let priority = isLong ? Scalar.string(String(repeating: "p", count: 210)) : nil
    let branch = try Self.branch(priority: priority)
    for count in Array(1...40) + Array(stride(from: 41, to: 400, by: 3)) {
      var leaves = Node.empty
      for key in Self.short.prefix(count) {
        _ = leaves.apply(.set(Path(keys: [try Key(key)]), Node(.bool(true))))
      }
      for place in [0, count / 4, count / 2, count - 2, count - 1, count] where place >= 0 {
        // Behind the key at that place, or in its stead.
        let name = place < count ? Self.short[place] : "~"
        for key in [try isLong ? Self.long(name + "!") : Key(name + "!"), try Key(name)] {
          var tree = leaves
          let isNew = tree.child(key).isEmpty
          _ = tree.apply(.set(Path(keys: [key]), branch))
          do {
            try tree.checkInvariants(isCompact: true)
          } catch {
            Issue.record("\(count) leaves, a branch at \(place): \(error)")
          }
          #expect(tree.childCount == count + (isNew ? 1 : 0))
          #expect(tree.child(key) == branch)
        }
      }
    }
  }

  #if DEBUG
    static let seeds: [UInt64] = [1, 2, 3, 10]
  #else
    static let seeds = Array(1...60 as ClosedRange<UInt64>)
  #endif

  @Test("entries of every size, in any order", arguments: seeds)
  func random(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var tree = Node.empty
    var expected: [Key: Node] = [:]
    // Which sizes there are, and how many keys begin alike, differs from seed to seed.
    let longOneIn = [3, 10, 100, 1000][random.below(4)]
    let branchOneIn = [2, 10, 100, 1000][random.below(4)]
    let removeOneIn = [3, 10][random.below(2)]
    for step in 0..<1500 {
      let index = seed % 3 == 0 ? step : random.below(900)
      let name = Self.short[index % Self.short.count]
      let key =
        try random.oneIn(longOneIn)
        ? Key(name + String(repeating: "-", count: [20, 200, 700, 768][random.below(4)] - 2))
        : Key(name)
      let priority: Scalar? =
        switch random.below(8) {
        case 0: .string(String(repeating: "p", count: 195 + random.below(30)))
        case 1: .integer(3)
        default: nil
        }
      let value: Node
      if random.oneIn(removeOneIn) && step > 300 {
        value = .empty
      } else if random.oneIn(branchOneIn) {
        value = try Self.branch(priority: priority)
      } else if random.oneIn(longOneIn) {
        value = Node(
          .string(String(repeating: "s", count: 195 + random.below(30))), priority: priority)
      } else {
        value = Node(.bool(true))
      }
      _ = tree.apply(.set(Path(keys: [key]), value))
      expected[key] = value.isEmpty ? nil : value
      if step % 25 == 0 || step > 1480 {
        do {
          try tree.checkInvariants(isCompact: true)
        } catch {
          Issue.record("step \(step): \(error)")
          return
        }
      }
    }
    #expect(tree.childCount == expected.count)
    for (key, node) in expected { #expect(tree.child(key) == node) }
  }
}
