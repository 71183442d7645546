private import DendroPlatform
import DendroStorage

extension DiskState {
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
  mutating func release(_ node: Int) {
    if freeSpace != nil, handles[node] == nil { freeSpace! += nodes[node].image.size }
  }

  func isLinked(_ node: Int) -> Bool {
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
