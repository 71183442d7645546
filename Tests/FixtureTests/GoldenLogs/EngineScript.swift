import DendroEngine
import DendroStorage
import DendroTesting
import DendroTestSupport
import DendroTree

/// A few hundred writes of every kind with server values in every place, admitted in batches of random length.
struct EngineScript {
  private let writeCount = 240
  private var generator: WriteGenerator

  init(seed: UInt64) {
    generator = WriteGenerator(seed: seed)
    generator.stringByteCountMax = [12, 300, 30, 2000][Int(seed % 4)]
    generator.wideOneIn = [3, 6][Int(seed % 2)]
  }

  func run(on disk: SimulatedDisk) throws {
    var script = self
    try script.runAll(on: disk)
  }

  private mutating func runAll(on disk: SimulatedDisk) throws {
    var options = EngineOptions()
    options.execution = .inline
    options.checkpointFactor = 0
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    for _ in 0..<writeCount {
      engine.submit(draft(), completion: nil)
      if generator.random.oneIn(3) {
        disk.clock.set(to: disk.clock.now() + Int64(generator.random.below(400)) - 20)
      }
      if generator.random.oneIn(8) { engine.pump() }
    }
    engine.pump()
    try engine.close()
  }

  private mutating func draft() -> Draft {
    let write = generator.write()
    var deferred: [Draft.Deferred] = []
    guard generator.random.oneIn(3) else { return Draft(write) }
    switch write {
    case .set(_, let node): collect(node, at: .root, &deferred)
    case .update(_, let entries):
      for entry in entries {
        switch entry.action {
        case .set(let node): collect(node, at: entry.path, &deferred)
        case .setPriority(.some): note(entry.path, isPriority: true, &deferred)
        default: break
        }
      }
    case .setPriority(_, .some): note(.root, isPriority: true, &deferred)
    default: break
    }
    return Draft(write, deferred: deferred)
  }

  /// Takes some of the leaves and priorities of a tree as stand-ins.
  private mutating func collect(
    _ node: Node, at path: Path, _ deferred: inout [Draft.Deferred]
  ) {
    if node.priority != nil, generator.random.oneIn(2) {
      note(path, isPriority: true, &deferred)
    }
    if node.isLeaf {
      if generator.random.oneIn(2) { note(path, isPriority: false, &deferred) }
      return
    }
    var children: [(Key, Node)] = []
    node.forEachChild { children.append(($0, $1)) }
    for (key, child) in children.prefix(40) { collect(child, at: path.appending(key), &deferred) }
  }

  private mutating func note(
    _ path: Path, isPriority: Bool, _ deferred: inout [Draft.Deferred]
  ) {
    let value: Draft.Deferred.Value =
      generator.random.oneIn(2) ? .timestamp : .increment(generator.number())
    deferred.append(Draft.Deferred(path: path, isPriority: isPriority, value: value))
  }
}
