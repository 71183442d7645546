import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

/// Pages that become empty beside pages that were not read: what comes into their range goes there.
@Suite("Pages that become empty beside unread ones")
struct EmptiedPageTests {
  /// The number of children that are removed; a page has about thirteen.
  private static let groups = Array(8...40)
  /// Each read of a checkpoint fails from now on.
  private static let unreadable = DiskFault(
    .error(5), of: [.read], at: 1, isPermanent: true, pathPart: ".checkpoint")

  private static func key(_ index: Int) -> String {
    "k" + String(repeating: "0", count: 5 - String(index).count) + String(index)
  }

  /// Made once, for those that take copies.
  private static let base = Result { try database() }

  /// A closed database with a checkpoint of 1,000 children of /list, each a string of 60 bytes.
  private static func database(checkpointCount: Int = 1, prefix: String = "") throws
    -> SimulatedDisk
  {
    let disk = SimulatedDisk(seed: 1)
    let engine = try LoadingTests.open(disk)
    let text = String(repeating: "v", count: 60)
    for index in 0..<1_000 {
      engine.submit(
        try set("list/\(prefix)\(key(index))", .string(text + key(index))), completion: nil)
    }
    for number in 0..<checkpointCount {
      engine.submit(try set("other", .integer(Int64(number))), completion: nil)
      engine.pump()
      try engine.checkpoint()
    }
    try engine.close()
    return disk
  }

  /// An engine that has read one group of children, and no page beside them that it need not read.
  private static func reader(_ disk: SimulatedDisk, _ group: Int) throws -> (
    Engine, keys: [String]
  ) {
    let engine = try LoadingTests.open(disk)
    let keys = (20 * group..<21 * group).map(key)
    for key in keys { _ = try engine.view(at: path("list/\(key)")) }
    return (engine, keys)
  }

  @Test("an update removes a page's children and sets one in its range", arguments: groups)
  func packed(group: Int) throws {
    let disk = try Self.base.get().copy()
    let (engine, keys) = try Self.reader(disk, group)
    var entries = try keys.map { Write.Entry(path: try path($0), action: .remove) }
    entries.append(
      .init(path: try path(keys.last! + "x"), action: .set(Node(.string("acknowledged")))))
    let update = Draft(.update(try path("list"), entries.inOrder))
    let mirror = Mirror()
    engine.setObserver(mirror)
    let results = Received<String>()
    engine.submit(update) { results.add("\($0)") }
    engine.pump()
    #expect(results.all.count == 1 && results.all[0].hasPrefix("success"))
    let place = try path("list/\(keys.last!)x")
    #expect(try engine.view(at: place).scalar == .string("acknowledged"))
    #expect(mirror.root.node(at: place).scalar == .string("acknowledged"))
    let root = try engine.wholeHead().root
    try engine.close()
    let again = try LoadingTests.open(disk, .whole)
    #expect(again.head.root == root)
    try again.close()
  }

  @Test(
    "if the page beside it cannot be read, the update is refused as a whole", arguments: groups)
  func unreadable(group: Int) throws {
    let disk = try Self.base.get().copy()
    let (engine, keys) = try Self.reader(disk, group)
    disk.inject(Self.unreadable)
    var entries = try keys.map { Write.Entry(path: try path($0), action: .remove) }
    entries.append(.init(path: try path(keys.last! + "x"), action: .set(Node(.bool(true)))))
    let results = Received<Bool>()
    engine.submit(Draft(.update(try path("list"), entries))) { result in
      if case .success = result { results.add(true) } else { results.add(false) }
    }
    engine.pump()
    let isThere = try? engine.view(at: path("list/\(keys.last!)x")).isEmpty == false
    // With few children no page becomes empty, and nothing else has to be read.
    #expect(results.all.count == 1 && (isThere == nil || isThere == results.all[0]))
  }

  @Test(
    "removals of a page's children are undone beside a page that cannot be read", arguments: groups)
  func undone(group: Int) throws {
    let disk = try Self.base.get().copy()
    let (engine, keys) = try Self.reader(disk, group)
    for key in keys {
      engine.submit(Draft(.remove(try path("list/\(key)")))) { _ in }
    }
    disk.inject(Self.unreadable)
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    engine.pump()
    #expect(try engine.node(at: path("list")).node.childCount == 1_000)
    for key in keys { #expect(try engine.view(at: path("list/\(key)")).isEmpty == false) }
  }

  @Test("an opening whose log meets a damaged page takes the checkpoint before")
  func damagedBelowTheLog() throws {
    let disk = try Self.database(checkpointCount: 2)
    let engine = try LoadingTests.open(disk)
    for number in 0..<2 {
      // Longer than a leaf that is edited in place.
      let long = Node(.string(String(repeating: "L", count: 300 + number)))
      engine.submit(
        Draft(
          .update(
            try path("list"),
            [
              .init(path: try path(Self.key(500) + "x"), action: .set(long)),
              .init(path: try path(Self.key(700) + "/n"), action: .increment(.integer(1))),
            ])), completion: nil)
    }
    engine.pump()
    let root = try engine.wholeHead().root
    try engine.close()
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    let newest = try #require(try directory.contents().checkpoints.max())
    let checkpoint = try CheckpointReader.open(directory, lsn: newest)
    for chunk in 0..<checkpoint.chunkCount - 1 {
      disk.flipBit(Int(checkpoint.offset(ofChunk: chunk) + 40) * 8, of: checkpoint.path)
    }
    directory.close()
    let again = try LoadingTests.open(disk)
    #expect(again.report.unreadableCheckpoints.count == 1)
    #expect(try again.wholeHead().root == root)
    try again.close()
  }

  @Test("a tree that shrinks beside unread pages is as it has to be", arguments: groups)
  func shrunk(group: Int) throws {
    let disk = SimulatedDisk(seed: 1)
    let text = String(repeating: "v", count: 60)
    for round in 0..<2 {
      let engine = try LoadingTests.open(disk)
      for index in 0..<1_000 where round == 0 {
        engine.submit(
          try set("list/\(Self.key(index))", .string(text + Self.key(index))), completion: nil)
      }
      // Of every second group, all but three; in the second round of the others.
      for index in 0..<1_000 where index / group % 2 == 1 - round && index % group >= 3 {
        engine.submit(Draft(.remove(try path("list/\(Self.key(index))"))), completion: nil)
      }
      engine.pump()
      try engine.checkpoint()
      try engine.close()
    }
    let whole = try LoadingTests.open(disk, .whole)
    try whole.head.root.checkInvariants()
    try whole.close()
  }

  @Test(
    "a read of a page that fails once gives an error, and nothing wrong",
    arguments: Array(stride(from: 1, through: 24, by: Scale.stride(4))))
  func failsOnce(number: Int) throws {
    let prefix = String(repeating: "p", count: 200)
    let disk = try Self.database(prefix: prefix)
    for order in 0..<3 {
      let copy = disk.copy()
      let engine = try LoadingTests.open(copy)
      let list = try engine.node(at: path("list"))
      copy.inject(
        DiskFault(.error(5), of: [.read], at: number, isPermanent: false, pathPart: ".checkpoint"))
      let keys = try? list.reading { node, _ in
        switch order {
        case 0: node.children.map(\.key.string)
        case 1: node.reversedChildren.map(\.key.string).reversed()
        default: node.children(from: try! Key(prefix)).map(\.key.string)
        }
      }
      #expect(keys == nil || keys == (0..<1_000).map { prefix + Self.key($0) })
      try engine.close()
    }
  }
}
