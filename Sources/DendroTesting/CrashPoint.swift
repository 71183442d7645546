/// A disk at one moment: what is durable, and what a crash at this moment may take.
///
/// The model promises as little as POSIX does:
/// - Only `synchronize` of a file makes its content and size durable, only `synchronizeDirectory`
///   the entries of a directory. Neither speaks for the other.
/// - A pending write may be there, not be there, or be there in part: cut at any byte, or with any
///   of its sectors missing; the file may have grown for it nonetheless; what is missing may hold
///   garbage. Writes of one file may reach the disk in any order.
/// - A pending truncation or preallocation may be there or not.
/// - Of the pending creations, renames and removals any subset may be there, and a rename may leave
///   both names. A file whose entry is lost is lost, however well it was synchronized.
///
/// Made by ``SimulatedDisk/crashPoints()``. A value: it shares memory with its disk and may be used
/// from any thread.
public struct CrashPoint: Sendable {
  /// How many operations of the trace came before.
  public private(set) var operationCount = 0
  /// The nodes as the disk surely has them.
  private(set) var durable: [DiskNode]
  /// What is not sure, in the order of the calls.
  private(set) var pending: [PendingChange] = []

  init(base: [DiskNode]) {
    durable = base
  }

  init(base: [DiskNode], trace: ArraySlice<DiskOperation>) {
    self.init(base: base)
    for operation in trace { advance(past: operation) }
  }

  /// How many changes a crash may take; a ``CrashState`` has a fate for each.
  public var pendingCount: Int { pending.count }

  /// The pending changes, one line each, in the order of a state's fates.
  public var pendingDescriptions: [String] { pending.map(\.effect.description) }

  /// Everything pending is lost.
  public var allDropped: CrashState {
    CrashState(Array(repeating: .dropped, count: pending.count))
  }

  /// Everything pending is there, as after an orderly stop.
  public var allKept: CrashState {
    CrashState(Array(repeating: .kept, count: pending.count))
  }

  /// The disk that the crash leaves, with an empty trace of its own, unlocked, without faults and
  /// without a limit of space.
  ///
  /// - `seed`: what its randomness starts from; its clock starts where clocks start.
  /// - Complexity: O(files + pending changes); content is shared until written.
  public func disk(_ state: CrashState, seed: UInt64 = 0) -> SimulatedDisk {
    SimulatedDisk(nodes: nodes(state), seed: seed)
  }

  func nodes(_ state: CrashState) -> [DiskNode] {
    var nodes = durable
    for (index, change) in pending.enumerated() {
      let fate = index < state.fates.count ? state.fates[index] : .dropped
      change.effect.apply(change.durability == .settled ? .kept : fate, to: &nodes)
    }
    return nodes
  }

  // MARK: Following the trace

  mutating func advance(past operation: DiskOperation) {
    operationCount += 1
    guard let effect = operation.effect else { return }
    switch effect {
    case .write, .extend, .truncate, .unlink, .rename: pending.append(PendingChange(effect))
    case .link(_, _, let node, _):
      precondition(node == durable.count, "nodes are numbered in the order of their creation")
      durable.append(.file)
      pending.append(PendingChange(effect))
    case .makeDirectory(_, _, let node):
      precondition(node == durable.count, "nodes are numbered in the order of their creation")
      durable.append(.directory)
      pending.append(PendingChange(effect))
    case .synchronize(let node): settle(file: node)
    case .failSynchronize(let node):
      for index in pending.indices
      where pending[index].effect.file == node && pending[index].durability == .open {
        pending[index].durability = .undecidable
      }
    case .synchronizeDirectory(let node): settle(directory: node)
    }
  }

  private mutating func settle(file node: Int) {
    var isBlocked = false
    pending.removeAll { change in
      guard change.effect.file == node else { return false }
      if change.durability == .undecidable { isBlocked = true }
      if isBlocked { return false }
      change.effect.apply(.kept, to: &durable)
      return true
    }
    guard isBlocked else { return }
    // Changes after an undecidable one are durable, but come on top of it.
    for index in pending.indices
    where pending[index].effect.file == node && pending[index].durability == .open {
      pending[index].durability = .settled
    }
  }

  private mutating func settle(directory node: Int) {
    var left: [PendingChange] = []
    left.reserveCapacity(pending.count)
    for change in pending {
      switch change.effect {
      case .link(node, _, _, _), .makeDirectory(node, _, _), .unlink(node, _),
        .rename(node, _, node, _, _):
        change.effect.apply(.kept, to: &durable)
      case .rename(let old, let oldName, node, let newName, let moved):
        durable[node].entries.set(newName, to: moved)
        left.append(PendingChange(.unlink(directory: old, name: oldName)))
      case .rename(node, let oldName, let new, let newName, let moved):
        durable[node].entries.remove(oldName)
        left.append(
          PendingChange(.link(directory: new, name: newName, node: moved, isNew: false)))
      default: left.append(change)
      }
    }
    pending = left
  }
}

/// A change that a crash may take.
struct PendingChange: Sendable {
  enum Durability: Sendable {
    /// The next synchronize makes it durable.
    case open
    /// A synchronize failed on it: it is there or not, and no later synchronize changes that.
    case undecidable
    /// Durable, on top of an undecidable one.
    case settled
  }

  let effect: DiskEffect
  var durability = Durability.open

  init(_ effect: DiskEffect) { self.effect = effect }
}

extension DiskEffect {
  /// The file whose `synchronize` makes this durable; nil for changes of directories.
  var file: Int? {
    switch self {
    case .write(let node, _, _), .extend(let node, _), .truncate(let node, _): node
    default: nil
    }
  }

  func apply(_ fate: CrashState.Fate, to nodes: inout [DiskNode]) {
    if case .write(let node, let offset, let bytes) = self {
      return bytes.withUnsafeBytes {
        Self.write($0, at: offset, fate, to: &nodes[node].image)
      }
    }
    guard fate == .kept || fate == .doubled else { return }
    switch self {
    case .extend(let node, let size): nodes[node].image.extend(to: size)
    case .truncate(let node, let size): nodes[node].image.truncate(to: size)
    case .link(let directory, let name, let node, _),
      .makeDirectory(let directory, let name, let node):
      nodes[directory].entries.set(name, to: node)
    case .unlink(let directory, let name): nodes[directory].entries.remove(name)
    case .rename(let directory, let name, let newDirectory, let newName, let node):
      if fate != .doubled { nodes[directory].entries.remove(name) }
      nodes[newDirectory].entries.set(newName, to: node)
    case .write, .synchronize, .failSynchronize, .synchronizeDirectory: break
    }
  }

  private static func write(
    _ bytes: UnsafeRawBufferPointer, at offset: Int, _ fate: CrashState.Fate,
    to image: inout FileImage
  ) {
    switch fate {
    case .dropped: break
    case .kept, .doubled: image.write(bytes, at: offset)
    case .torn(let wanted, let rest):
      let count = max(0, min(wanted, bytes.count))
      if count > 0 { image.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: offset) }
      switch rest {
      case .absent: break
      case .extended: image.extend(to: offset + bytes.count)
      case .garbage(let seed):
        let random = SeededRandomness(seed: seed)
        let garbage = (count..<bytes.count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        garbage.withUnsafeBytes { image.write($0, at: offset + count) }
      }
    case .sectors(let size, let mask, let extends):
      var start = 0
      var index = 0
      while start < bytes.count {
        let end = min(bytes.count, ((offset + start) / size + 1) * size - offset)
        if isSet(index, in: mask) {
          image.write(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), at: offset + start)
        }
        start = end
        index += 1
      }
      if extends { image.extend(to: offset + bytes.count) }
    }
  }

  private static func isSet(_ index: Int, in mask: UInt64) -> Bool {
    let (word, bit) = index.quotientAndRemainder(dividingBy: 64)
    let bits = word == 0 ? mask : SeededRandomness(seed: mask &+ UInt64(word)).next()
    return bits >> UInt64(bit) & 1 == 1
  }
}
