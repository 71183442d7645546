import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Testing

@Suite("dendro: any state of the past")
struct TimeTravelTests {
  private static let seeds = 0..<UInt64(Scale.ofProcesses(20))
  private static let pointsPerSeed = Scale.share < 1 ? 20 : 50

  @Test(
    "get --at gives the model's tree, diff leads from one to the other, blame agrees with a replay",
    arguments: seeds)
  func states(seed: UInt64) throws {
    let dendro = Tool(folder: try Folder())
    let directory = try LoggedDirectory(
      at: "\(dendro.folder.path)/db", seed: seed &+ 500, keepsHistory: true)
    var models = [ModelTree.empty]
    for write in directory.writes {
      var model = models[models.count - 1]
      model.apply(write)
      models.append(model)
    }
    var random = SeededGenerator(seed: seed)
    let count = directory.writes.count
    for number in 0..<Self.pointsPerSeed {
      let (a, b) = (random.below(count + 1), random.below(count + 1))
      let hint: Comment = "seed \(seed), point \(number): \(a) and \(b)"
      let export = try dendro("export", "db", "--at", "\(a)").output
      let node = try JSONParser.parse(export)
      #expect(Self.isSame(ModelTree(node), models[a]), hint)
      if number % 5 == 0 { try diff(a, b, directory, dendro, hint) }
      if number % 10 == 0 { try blame(a, directory, dendro, hint) }
      let time = directory.times[max(0, a - 1)]
      let last = directory.times.lastIndex { $0 <= time } ?? 0
      let then = try dendro(
        "hash", "db", "--at", Self.text(time), "--json"
      ).object
      #expect(then["lsn"] as? Int == last + 1, hint)
    }
  }

  /// Equal as the tree says it: 1 is 1.0.
  private static func isSame(_ a: ModelTree, _ b: ModelTree) -> Bool { node(a) == node(b) }

  private static func node(_ model: ModelTree) -> Node {
    if let scalar = model.scalar { return Node(scalar, priority: model.priority) }
    var node = Node.empty
    for (key, child) in model.children {
      guard let key = try? Key(String(decoding: key, as: UTF8.self)) else { continue }
      _ = node.apply(.set(Path(keys: [key]), Self.node(child)))
    }
    return node.isEmpty ? node : node.settingPriority(model.priority)
  }

  private static func text(_ time: Int64) -> String {
    let date = Date(timeIntervalSince1970: Double(time / 1000)).formatted(.iso8601).dropLast()
    return "\(date).\(String(format: "%03d", time % 1000))"
  }

  private func diff(
    _ a: Int, _ b: Int, _ directory: LoggedDirectory, _ dendro: Tool, _ hint: Comment
  ) throws {
    let lines = try dendro("diff", "db", "--from", "\(a)", "--to", "\(b)", "--json")
    #expect(lines.status == (directory.trees[a] == directory.trees[b] ? 0 : 1), hint)
    let name = "state"
    try? FileManager.default.removeItem(atPath: "\(dendro.folder.path)/\(name)")
    try dendro("import", name, "/", "-", input: dendro("export", "db", "--at", "\(a)").output)
    let applied = try dendro("apply", name, "-", input: lines.output)
    #expect(applied.status == 0, "\(hint) \(applied.errors)")
    #expect(
      try dendro("hash", name).output == dendro("hash", "db", "--at", "\(b)").output, hint)
  }

  private func blame(_ a: Int, _ directory: LoggedDirectory, _ dendro: Tool, _ hint: Comment)
    throws
  {
    // The write behind which each leaf has had its value.
    var expected: [String: Int] = [:]
    for lsn in 1..<(a + 1) {
      let before = Self.leaves(directory.trees[lsn - 1])
      let after = Self.leaves(directory.trees[lsn])
      for (path, leaf) in after where before[path] != leaf { expected[path] = lsn }
      for path in before.keys where after[path] == nil { expected[path] = nil }
    }
    var found: [String: Int] = [:]
    for line in try dendro("blame", "db", "--at", "\(a)", "--json").lines {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
      found[object["path"] as? String ?? ""] = object["lsn"] as? Int
    }
    #expect(found == expected, hint)
  }

  private static func leaves(_ node: Node, at path: Path = .root) -> [String: Node] {
    if node.isEmpty { return [:] }
    guard node.isBranch else { return ["\(path)": node] }
    return node.children.reduce(into: [:]) { leaves, child in
      leaves.merge(Self.leaves(child.node, at: path.appending(child.key))) { $1 }
    }
  }
}
