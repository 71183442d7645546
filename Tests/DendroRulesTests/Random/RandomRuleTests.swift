import DendroRules
import DendroTestSupport
import Testing

/// Rules at random against requests at random.
@Suite("Rules at random")
struct RandomRuleTests {
  private static let ruleCount = 10_000
  private static let seeds: Range<UInt64> = 0..<20

  private struct Tally {
    var accepted = 0
    var allowed = 0
    var denied = 0
    var held = 0
    var changed = 0
  }

  @Test("no trap, within bounds, the same verdict twice, sound observations", arguments: seeds)
  func decide(seed: UInt64) throws {
    var generator = RuleGenerator(seed: seed)
    var tally = Tally()
    for _ in 0..<Self.ruleCount / Self.seeds.count {
      let text = generator.rules()
      guard let rules = try? Rules(text) else { continue }
      tally.accepted += 1
      for _ in 0..<6 {
        let tree = try JSONTree(
          generator.data()
            .replacing("{\".sv\":\"timestamp\"}", with: "5"))
        if generator.generator.oneIn(3) {
          try read(rules, tree, &generator, &tally, "seed \(seed): \(text)")
        } else {
          try write(rules, tree, &generator, &tally, "seed \(seed): \(text)")
        }
      }
    }
    #expect(tally.accepted > 200 && tally.allowed > 100 && tally.denied > 100, "seed \(seed)")
    #expect(tally.held > 200 && tally.changed > 10, "seed \(seed): \(tally)")
  }

  private func read(
    _ rules: Rules, _ tree: JSONTree, _ generator: inout RuleGenerator, _ tally: inout Tally,
    _ context: String
  ) throws {
    let request = try RuleRequest(
      reading: generator.path(), query: generator.query(), auth: generator.auth(), now: 5)
    let verdict = try checked(rules, request, tree, nil, &tally, context)
    let other = try changed(tree, &generator)
    if verdict.observations?.hold(data: other) == true {
      tally.held += 1
      #expect(
        rules.decide(request, data: other).isAllowed == verdict.isAllowed, "\(context) \(request)")
    } else {
      tally.changed += 1
    }
  }

  private func write(
    _ rules: Rules, _ tree: JSONTree, _ generator: inout RuleGenerator, _ tally: inout Tally,
    _ context: String
  ) throws {
    let write = generator.write()
    let request = try write.request(auth: generator.auth(), now: 5)
    let verdict = try checked(
      rules, request, tree, try write.applied(to: tree, now: 5), &tally, context)
    let other = try changed(tree, &generator)
    let otherData = try write.applied(to: other, now: 5)
    if verdict.observations?.hold(data: other, newData: otherData) == true {
      tally.held += 1
      #expect(
        rules.decide(request, data: other, newData: otherData).isAllowed == verdict.isAllowed,
        "\(context)\n\(write)\n\(tree)\n\(other)")
    } else {
      tally.changed += 1
    }
  }

  /// Asks several times in several ways, and expects one verdict.
  private func checked(
    _ rules: Rules, _ request: RuleRequest, _ tree: JSONTree, _ newData: JSONTree?,
    _ tally: inout Tally, _ context: String
  ) throws -> RuleVerdict {
    let plain = rules.decide(request, data: tree, newData: newData)
    let detailed = rules.decide(
      request, data: tree, newData: newData, details: [.trace, .observations])
    let foreign = rules.decide(
      request, data: Wrapped(tree), newData: newData.map { Wrapped($0) })
    #expect(
      plain.isAllowed == detailed.isAllowed && plain.isAllowed == foreign.isAllowed, "\(context)")
    #expect(
      plain.stepCount == detailed.stepCount && plain.stepCount == foreign.stepCount, "\(context)")
    #expect(
      plain.stepCount <= RuleLimits.steps + 1_000 * RuleLimits.stepsPerLocation, "\(context)")
    #expect(
      detailed.observations?.hold(data: tree, newData: newData) == true, "\(context)")
    if plain.isAllowed { tally.allowed += 1 } else { tally.denied += 1 }
    return detailed
  }

  private func changed(_ tree: JSONTree, _ generator: inout RuleGenerator) throws -> JSONTree {
    try tree.setting(generator.path(3), to: generator.data(1), now: 5)
  }

  @Test("any text is rules or is refused", arguments: Scale.seeds(8))
  func damage(seed: UInt64) {
    var generator = RuleGenerator(seed: seed)
    let pieces =
      Array("{}[]\",:/*\\'()!&|=.$?+-<> \n\u{0}0é").map(String.init) + [
        "true", ".read", "//", "\\u",
      ]
    for _ in 0..<600 {
      var characters = Array(generator.rules())
      for _ in 0...generator.generator.below(4) {
        let place = generator.generator.below(characters.count)
        switch generator.generator.below(3) {
        case 0: characters.remove(at: place)
        case 1: characters.insert(contentsOf: generator.pick(pieces), at: place)
        default: characters.removeSubrange(place..<min(characters.count, place + 9))
        }
        if characters.isEmpty { characters = ["{"] }
      }
      _ = try? Rules(String(characters))
      _ = try? RuleTests(String(characters))
      _ = try? JSONValue(parsing: String(characters))
    }
  }
}

/// A tree behind the public protocol alone.
private struct Wrapped: RuleData {
  let tree: JSONTree

  init(_ tree: JSONTree) { self.tree = tree }

  var exists: Bool { tree.exists }
  var scalar: RuleScalar? { tree.scalar }
  var priority: RuleScalar? { tree.priority }
  func child(_ key: String) -> Wrapped { Wrapped(tree.child(key)) }
  func forEachChild(_ body: (String, Wrapped) -> Bool) {
    tree.forEachChild { body($0, Wrapped($1)) }
  }
}
