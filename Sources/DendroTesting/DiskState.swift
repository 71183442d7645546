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
  /// How many calls there are until the disk is gone; nil where it stays.
  var callsUntilGone: Int?
  /// The facts that the program has acknowledged, each with the number of calls made before it.
  var acknowledged: [(operationCount: Int, fact: String)] = []
  /// How often a name in a directory was removed or replaced, or the directory itself was, by node.
  private var changeCounts: [Int: Int] = [:]
  private var handles: [Int: Int] = [:]
  private var locks: [Int: [(handle: UInt64, kind: LockKind)]] = [:]
  /// The byte that each handle of a node has locked.
  private var byteLocks: [Int: [UInt64: UInt64]] = [:]
  private var lastHandle: UInt64 = 0

  init(nodes: [DiskNode]) {
    self.nodes = nodes
    base = nodes
  }

  // MARK: Every call passes here

  /// Counts the call, lets the faults have it, and writes down one that fails right away.
  private mutating func begin(_ operation: DiskOperation) throws(SystemError) -> DiskFault.Effect? {
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
  private mutating func fail(_ operation: DiskOperation, _ code: Int32) -> SystemError {
    var operation = operation
    operation.errno = code
    operation.done = 0
    operation.effect = nil
    trace.append(operation)
    return SystemError(code)
  }

  private mutating func end(_ operation: DiskOperation, effect: DiskEffect? = nil) {
    var operation = operation
    if let effect { operation.effect = effect }
    trace.append(operation)
  }

  // MARK: Paths

  private func resolve(_ names: some Sequence<Name>) throws(SystemError) -> Int {
    var node = DiskNode.root
    for name in names {
      guard nodes[node].isDirectory else { throw SystemError(ENOTDIR) }
      guard let next = nodes[node].entries[name] else { throw .noSuchFile }
      node = next
    }
    return node
  }

  private func place(_ path: String) throws(SystemError) -> (directory: Int, name: Name) {
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
  private mutating func attempt<R>(
    _ operation: DiskOperation, _ step: (DiskState) throws(SystemError) -> R
  ) throws(SystemError) -> R {
    do {
      return try step(self)
    } catch {
      throw fail(operation, error.code)
    }
  }

  // MARK: Directories

  mutating func createDirectory(_ path: String) throws(SystemError) {
    let operation = DiskOperation(.createDirectory, path)
    _ = try begin(operation)
    let (directory, name) = try attempt(operation) { (state) throws(SystemError) in
      try state.place(path)
    }
    guard nodes[directory].entries[name] == nil else { throw fail(operation, EEXIST) }
    guard freeSpace != 0 else { throw fail(operation, ENOSPC) }
    nodes.append(.directory)
    let node = nodes.count - 1
    nodes[directory].entries.set(name, to: node)
    end(operation, effect: .makeDirectory(directory: directory, name: name, node: node))
  }

  mutating func list(_ path: String) throws(SystemError) -> [String] {
    let operation = DiskOperation(.list, path)
    _ = try begin(operation)
    let node = try attempt(operation) { (state) throws(SystemError) in
      try state.resolve(Name.components(of: path))
    }
    guard nodes[node].isDirectory else { throw fail(operation, ENOTDIR) }
    end(operation)
    return nodes[node].entries.names
  }

  mutating func rename(_ from: String, to: String) throws(SystemError) {
    let operation = DiskOperation(.rename, from, newPath: to)
    _ = try begin(operation)
    let (old, new) = try attempt(operation) { (state) throws(SystemError) in
      (try state.place(from), try state.place(to))
    }
    guard let node = nodes[old.directory].entries[old.name] else { throw fail(operation, ENOENT) }
    if let replaced = nodes[new.directory].entries[new.name] {
      if replaced == node { return end(operation) }
      if nodes[replaced].isDirectory != nodes[node].isDirectory {
        throw fail(operation, nodes[replaced].isDirectory ? EISDIR : ENOTDIR)
      }
      if nodes[replaced].isDirectory, !nodes[replaced].entries.isEmpty {
        throw fail(operation, ENOTEMPTY)
      }
      nodes[new.directory].entries.remove(new.name)
      release(replaced)
      noteChange(of: replaced)
    }
    for changed in [old.directory, new.directory, node] { noteChange(of: changed) }
    nodes[old.directory].entries.remove(old.name)
    nodes[new.directory].entries.set(new.name, to: node)
    end(
      operation,
      effect: .rename(
        directory: old.directory, name: old.name, newDirectory: new.directory, newName: new.name,
        node: node))
  }

  mutating func remove(_ path: String) throws(SystemError) {
    let operation = DiskOperation(.remove, path)
    _ = try begin(operation)
    let (directory, name) = try attempt(operation) { (state) throws(SystemError) in
      try state.place(path)
    }
    guard let node = nodes[directory].entries[name] else { throw fail(operation, ENOENT) }
    if nodes[node].isDirectory, !nodes[node].entries.isEmpty { throw fail(operation, ENOTEMPTY) }
    nodes[directory].entries.remove(name)
    release(node)
    for changed in [directory, node] { noteChange(of: changed) }
    end(operation, effect: .unlink(directory: directory, name: name))
  }

  mutating func synchronizeDirectory(_ path: String) throws(SystemError) {
    let operation = DiskOperation(.synchronizeDirectory, path)
    _ = try begin(operation)
    let node = try attempt(operation) { (state) throws(SystemError) in
      try state.resolve(Name.components(of: path))
    }
    guard nodes[node].isDirectory else { throw fail(operation, ENOTDIR) }
    end(operation, effect: .synchronizeDirectory(node: node))
  }

  mutating func identity(_ path: String) throws(SystemError) -> FileIdentity {
    let operation = DiskOperation(.identity, path)
    _ = try begin(operation)
    let node = try attempt(operation) { (state) throws(SystemError) in
      try state.resolve(Name.components(of: path))
    }
    end(operation)
    return Self.identity(of: node)
  }

  static func identity(of node: Int) -> FileIdentity {
    FileIdentity(device: 1, inode: UInt64(node))
  }

  private mutating func noteChange(of node: Int) { changeCounts[node, default: 0] += 1 }

  /// Nil where the call fails: a file system may have no watches.
  mutating func watch(_ path: String) -> (node: Int, changeCount: Int)? {
    let operation = DiskOperation(.watch, path)
    do { _ = try begin(operation) } catch { return nil }
    guard let node = node(at: path) else { return nil }
    end(operation)
    return (node, changeCounts[node, default: 0])
  }

  /// How often the watched names have changed; nil where the call fails.
  mutating func changeCount(_ node: Int, _ path: String) -> Int? {
    let operation = DiskOperation(.watch, path)
    do { _ = try begin(operation) } catch { return nil }
    end(operation)
    return changeCounts[node, default: 0]
  }

  // MARK: Files

  mutating func open(_ path: String, _ mode: OpenMode) throws(SystemError)
    -> (node: Int, handle: UInt64)
  {
    var operation = DiskOperation(mode == .create ? .create : .open, path)
    _ = try begin(operation)
    let (directory, name) = try attempt(operation) { (state) throws(SystemError) in
      try state.place(path)
    }
    let node: Int
    if let found = nodes[directory].entries[name] {
      guard mode != .create else { throw fail(operation, EEXIST) }
      guard mode == .read || !nodes[found].isDirectory else { throw fail(operation, EISDIR) }
      node = found
    } else {
      guard mode == .create || mode == .openOrCreate else { throw fail(operation, ENOENT) }
      guard freeSpace != 0 else { throw fail(operation, ENOSPC) }
      nodes.append(.file)
      node = nodes.count - 1
      nodes[directory].entries.set(name, to: node)
      operation.effect = .link(directory: directory, name: name, node: node, isNew: true)
    }
    end(operation)
    handles[node, default: 0] += 1
    lastHandle += 1
    return (node, lastHandle)
  }

  mutating func lockByte(_ node: Int, _ handle: UInt64, _ position: UInt64) {
    byteLocks[node, default: [:]][handle] = position
  }

  func lockedByte(_ node: Int, _ handle: UInt64, _ range: Range<UInt64>) -> UInt64? {
    byteLocks[node]?.first { $0.key != handle && range.contains($0.value) }?.value
  }

  mutating func unlock(_ node: Int, _ handle: UInt64) {
    byteLocks[node]?[handle] = nil
    guard var holders = locks[node] else { return }
    holders.removeAll { $0.handle == handle }
    locks[node] = holders.isEmpty ? nil : holders
  }

  mutating func close(_ node: Int, _ handle: UInt64) {
    unlock(node, handle)
    guard let count = handles[node] else { return }
    handles[node] = count > 1 ? count - 1 : nil
    if count == 1, freeSpace != nil, !isLinked(node) { freeSpace! += nodes[node].image.size }
  }

  /// Frees the space of a node that lost its name, unless a handle is open. Then the space is freed when
  /// the last handle is closed.
  private mutating func release(_ node: Int) {
    if freeSpace != nil, handles[node] == nil { freeSpace! += nodes[node].image.size }
  }

  private func isLinked(_ node: Int) -> Bool {
    var isLinked = false
    for directory in nodes where directory.isDirectory {
      directory.entries.forEach { if $1 == node { isLinked = true } }
    }
    return isLinked
  }

  mutating func read(
    _ node: Int, _ path: String, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    var operation = DiskOperation(.read, path, offset: offset, count: buffer.count)
    let struck = try begin(operation)
    guard !nodes[node].isDirectory else { throw fail(operation, EISDIR) }
    var wanted = buffer
    if case .short(let count) = struck, buffer.count > 0 {
      wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, max(1, count))])
    }
    operation.done = nodes[node].image.read(into: wanted, at: offset)
    end(operation)
    return operation.done
  }

  mutating func write(
    _ node: Int, _ path: String, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    var operation = DiskOperation(.write, path, offset: offset, count: bytes.count)
    let struck = try begin(operation)
    guard bytes.count > 0 else {
      end(operation)
      return 0
    }
    guard offset <= UInt64(FileImage.sizeLimit - bytes.count) else { throw fail(operation, EFBIG) }
    let start = Int(offset)
    var count = bytes.count
    var code: Int32 = 0
    switch struck {
    case .short(let limit): count = min(count, max(1, limit))
    case .partial(let limit, let errno): (count, code) = (min(count, max(0, limit)), errno)
    default: break
    }
    let size = nodes[node].image.size
    if let freeSpace, start + count > size {
      // What fits is written; the next call then finds no room at all.
      count = min(count, max(0, size + freeSpace - start))
      if count == 0, code == 0 { throw fail(operation, ENOSPC) }
      self.freeSpace = freeSpace - max(0, start + count - size)
    }
    let part = UnsafeRawBufferPointer(rebasing: bytes[..<count])
    if count > 0 {
      nodes[node].image.write(part, at: start)
      operation.effect = .write(node: node, offset: start, bytes: [UInt8](part))
    }
    operation.done = count
    operation.errno = code
    end(operation)
    if code != 0 { throw SystemError(code) }
    return count
  }

  mutating func preallocate(_ node: Int, _ path: String, from offset: UInt64, count: UInt64)
    throws(SystemError)
  {
    let operation = DiskOperation(
      .preallocate, path, offset: offset, count: Int(clamping: count))
    _ = try begin(operation)
    let (end, overflow) = offset.addingReportingOverflow(count)
    guard !overflow, end <= UInt64(FileImage.sizeLimit) else { throw fail(operation, EFBIG) }
    let growth = Int(end) - nodes[node].image.size
    guard growth > 0 else { return self.end(operation) }
    if let freeSpace {
      guard growth <= freeSpace else { throw fail(operation, ENOSPC) }
      self.freeSpace = freeSpace - growth
    }
    nodes[node].image.extend(to: Int(end))
    self.end(operation, effect: .extend(node: node, size: Int(end)))
  }

  mutating func truncate(_ node: Int, _ path: String, to size: UInt64) throws(SystemError) {
    let operation = DiskOperation(.truncate, path, offset: size)
    _ = try begin(operation)
    guard size <= UInt64(FileImage.sizeLimit) else { throw fail(operation, EFBIG) }
    let growth = Int(size) - nodes[node].image.size
    guard growth != 0 else { return end(operation) }
    if let freeSpace {
      guard growth <= freeSpace else { throw fail(operation, ENOSPC) }
      self.freeSpace = freeSpace - growth
    }
    nodes[node].image.truncate(to: Int(size))
    end(operation, effect: .truncate(node: node, size: Int(size)))
  }

  mutating func synchronize(_ node: Int, _ path: String) throws(SystemError) {
    var operation = DiskOperation(.synchronize, path)
    if case .failedSynchronize(let pages) = try begin(operation) {
      if pages == .reverted { revert(node) }
      operation.errno = EIO
      end(operation, effect: .failSynchronize(node: node))
      throw .inputOutput
    }
    end(operation, effect: .synchronize(node: node))
  }

  /// Shows the content from before again, in a file that keeps its size: sizes are metadata, and
  /// those are not what the failed writing back was about.
  private mutating func revert(_ node: Int) {
    let durable = CrashPoint(base: base, trace: trace[...]).durable
    let size = nodes[node].image.size
    nodes[node].image = node < durable.count ? durable[node].image : FileImage()
    nodes[node].image.truncate(to: size)
  }

  mutating func size(_ node: Int, _ path: String) throws(SystemError) -> UInt64 {
    let operation = DiskOperation(.size, path)
    _ = try begin(operation)
    end(operation)
    return UInt64(nodes[node].image.size)
  }

  mutating func identity(_ node: Int, _ path: String) throws(SystemError) -> FileIdentity {
    let operation = DiskOperation(.identity, path)
    _ = try begin(operation)
    end(operation)
    return Self.identity(of: node)
  }

  mutating func lock(_ node: Int, _ path: String, _ handle: UInt64, _ kind: LockKind)
    throws(SystemError) -> Bool
  {
    let operation = DiskOperation(.lock, path)
    _ = try begin(operation)
    end(operation)
    var others = locks[node] ?? []
    others.removeAll { $0.handle == handle }
    guard others.isEmpty || (kind == .shared && others.allSatisfy { $0.kind == .shared }) else {
      // As flock(2) has it: a conversion gives the old lock up before it asks for the new one.
      locks[node] = others
      return false
    }
    locks[node] = others + [(handle, kind)]
    return true
  }
}
