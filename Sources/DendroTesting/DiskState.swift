private import DendroPlatform
import DendroStorage

/// Everything a simulated disk holds. One owner, no lock: ``SimulatedDisk`` keeps it under its own.
struct DiskState: Sendable {
  /// What the calls see: the page cache and the directories in memory.
  var nodes: [DiskNode]
  /// What was durable when the trace began.
  var base: [DiskNode]
  var trace: [DiskOperation] = []
  var faults: [ArmedFault] = []
  /// Bytes that files may still grow by; nil for no limit.
  var freeSpace: Int?
  /// What every call fails with once the disk is gone.
  var gone: SystemError?
  /// How many calls there are until the disk is gone; nil if it stays.
  var callsUntilGone: Int?
  /// The facts that the program has acknowledged, each with the number of calls made before it.
  var acknowledged: [(operationCount: Int, fact: String)] = []
  /// How often a name in a directory was removed or replaced, or the directory itself was, by node.
  var changeCounts: [Int: Int] = [:]
  var handles: [Int: Int] = [:]
  var locks: [Int: [(handle: UInt64, kind: LockKind)]] = [:]
  /// The byte that each handle of a node has locked.
  var byteLocks: [Int: [UInt64: UInt64]] = [:]
  var lastHandle: UInt64 = 0

  init(nodes: [DiskNode]) {
    self.nodes = nodes
    base = nodes
  }

  // MARK: Every call passes here

  /// Counts the call, lets the faults have it, and writes down one that fails right away.
  mutating func begin(_ operation: DiskOperation) throws(SystemError) -> DiskFault.Effect? {
    if let gone { throw gone }
    if let count = callsUntilGone {
      guard count > 0 else {
        gone = .inputOutput
        throw .inputOutput
      }
      callsUntilGone = count - 1
    }
    guard !faults.isEmpty else { return nil }
    var struck: DiskFault.Effect?
    for index in faults.indices {
      if let effect = faults[index].strikes(operation.kind, operation.path) {
        struck = struck ?? effect
      }
    }
    guard let struck else { return nil }
    switch (struck, operation.kind) {
    case (.error(let code), _): throw fail(operation, code)
    case (.short, .read), (.short, .write), (.partial, .write), (.failedSynchronize, .synchronize):
      return struck
    case (.partial(_, let code), _): throw fail(operation, code)
    case (.failedSynchronize, _): throw fail(operation, EIO)
    case (.short, _): return nil
    }
  }

  /// Writes the failed call down; returns what to throw.
  mutating func fail(_ operation: DiskOperation, _ code: Int32) -> SystemError {
    var operation = operation
    operation.errno = code
    operation.done = 0
    operation.effect = nil
    trace.append(operation)
    return SystemError(code)
  }

  mutating func end(_ operation: DiskOperation, effect: DiskEffect? = nil) {
    var operation = operation
    if let effect { operation.effect = effect }
    trace.append(operation)
  }

  // MARK: Paths

  func resolve(_ names: some Sequence<Name>) throws(SystemError) -> Int {
    var node = DiskNode.root
    for name in names {
      guard nodes[node].isDirectory else { throw SystemError(ENOTDIR) }
      guard let next = nodes[node].entries[name] else { throw .noSuchFile }
      node = next
    }
    return node
  }

  func place(_ path: String) throws(SystemError) -> (directory: Int, name: Name) {
    let names = Name.components(of: path)
    guard let name = names.last else { throw .exists }
    let directory = try resolve(names.dropLast())
    guard nodes[directory].isDirectory else { throw SystemError(ENOTDIR) }
    return (directory, name)
  }

  func node(at path: String) -> Int? {
    try? resolve(Name.components(of: path))
  }

  /// Runs a step that can fail for what the disk holds, and writes the failure down.
  mutating func attempt<R>(
    _ operation: DiskOperation, _ step: (DiskState) throws(SystemError) -> R
  ) throws(SystemError) -> R {
    do {
      return try step(self)
    } catch {
      throw fail(operation, error.code)
    }
  }
}
