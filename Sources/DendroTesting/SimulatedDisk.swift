package import DendroStorage
private import Synchronization

/// A disk in memory that simulates crashes.
///
/// It records what a program writes and synchronizes, and derives every disk that a power cut could have
/// left, so that a test can run the program's recovery on millions of them:
///
/// ```swift
/// let disk = SimulatedDisk(seed: 1)
/// … // run the program on it
/// for point in disk.crashPoints() {
///   point.forEachState { state in
///     let crashed = point.disk(state)
///     … // open what is there, and judge it
///   }
/// }
/// ```
///
/// It also injects faults (``inject(_:)``, ``freeSpace``), reads and changes the contents of its files, and
/// records every call (``trace``). All its random choices follow from its seed. ``CrashPoint`` describes
/// what it assumes of a disk.
///
/// May be used from any thread.
public final class SimulatedDisk: Sendable {
  private let state: Mutex<DiskState>
  /// The seed of the disk's random choices.
  public let seed: UInt64
  /// The time that a database on this disk sees.
  public let clock: SimulatedClock
  /// The randomness that a database on this disk draws from.
  public let randomness: SeededRandomness

  /// An empty disk with a root directory.
  public convenience init(seed: UInt64 = 0) {
    self.init(nodes: DiskNode.rootTable, seed: seed)
  }

  init(nodes: [DiskNode], seed: UInt64, clock: SimulatedClock = SimulatedClock()) {
    state = Mutex(DiskState(nodes: nodes))
    self.seed = seed
    self.clock = clock
    randomness = SeededRandomness(seed: seed)
  }

  /// All that an engine touches of the world, simulated.
  package var environment: Environment {
    Environment(fileSystem: self, clock: clock, randomness: randomness)
  }

  func withState<R, E: Error>(_ body: (inout DiskState) throws(E) -> R) throws(E) -> R
  where R: Sendable {
    try state.withLock { (state: inout sending DiskState) throws(E) -> R in try body(&state) }
  }

  // MARK: What was done

  /// Every call since the disk was made, with how it ended.
  public var trace: [DiskOperation] { withState { $0.trace } }

  /// How many calls were made: a place in the ``trace``.
  public var operationCount: Int { withState { $0.trace.count } }

  // MARK: Crashes

  /// The disk now, as a crash at this moment finds it.
  ///
  /// - Complexity: O(length of the trace).
  public func crashPoint() -> CrashPoint {
    withState { CrashPoint(base: $0.base, trace: $0.trace[...]) }
  }

  /// The disk after each call that changed or synchronized something, and before the first.
  ///
  /// - Complexity: O(length of the trace); the points share what they have in common.
  public func crashPoints() -> [CrashPoint] {
    let (base, trace) = withState { ($0.base, $0.trace) }
    var point = CrashPoint(base: base)
    var points = [point]
    for operation in trace {
      point.advance(past: operation)
      if operation.isCrashPoint { points.append(point) }
    }
    return points
  }

  /// From now on every call fails with `EIO`, as if the cable had been pulled, and leaves nothing in
  /// the ``trace``.
  public func disconnect() {
    withState { $0.gone = .inputOutput }
  }

  /// Serves so many more calls, then disconnects the disk: to a program this is a power loss at the moment of
  /// the last call.
  ///
  /// - Parameter callCount: 0 is now; negative numbers count as 0.
  public func disconnect(after callCount: Int) {
    withState { $0.callsUntilGone = max(0, callCount) }
  }

  /// Whether a call was refused because the disk is disconnected, or `disconnect()` was called.
  public var isDisconnected: Bool { withState { $0.gone != nil } }

  /// Records a fact that the program has just promised to a user, such as that a sign-up succeeded.
  /// ``Crash/acknowledged`` includes it for every later crash.
  ///
  /// Call it exactly where the program would answer its user, on any thread.
  public func acknowledge(_ fact: String) {
    withState { $0.acknowledged.append(($0.trace.count, fact)) }
  }

  /// All that was acknowledged, in its order.
  public var acknowledged: [String] { withState { $0.acknowledged.map(\.fact) } }

  /// A disk of its own with the content that this one shows now, all of it durable: what an orderly
  /// stop and a copy would leave.
  ///
  /// - Complexity: O(files); content is shared until written.
  public func copy(seed: UInt64 = 0) -> SimulatedDisk {
    SimulatedDisk(nodes: withState { $0.nodes }, seed: seed, clock: SimulatedClock(at: clock.now()))
  }

  // MARK: Failures

  /// Makes a later call fail. Several faults can wait; on one call the first injected wins.
  public func inject(_ fault: DiskFault) {
    withState { $0.faults.append(ArmedFault(fault: fault)) }
  }

  /// Takes all faults back, the permanent ones too.
  public func removeFaults() {
    withState { $0.faults = [] }
  }

  /// Whether a fault was injected that has not been removed, whether it has struck or not.
  public var hasFaults: Bool { withState { !$0.faults.isEmpty } }

  /// How many bytes the files may still grow by, before `ENOSPC`; nil, the default, is no limit.
  /// A write gets in what fits and is short; with 0 left no file can be created either. Bytes that a file has already take
  /// no space, so that the log takes small writes until it has to grow. Removing and truncating give space back, and so
  /// does setting it.
  public var freeSpace: Int? {
    get { withState { $0.freeSpace } }
    set { withState { $0.freeSpace = newValue.map { max(0, $0) } } }
  }

  // MARK: What is there

  /// Whether something has this path.
  public func exists(_ path: String) -> Bool {
    withState { $0.node(at: path) != nil }
  }

  /// The names in a directory in their order; empty if there is none. Not a call: no fault
  /// strikes and the trace does not have it.
  public func names(in directory: String) -> [String] {
    withState { state in
      state.node(at: directory).map { state.nodes[$0].entries.names.sorted() } ?? []
    }
  }

  /// The content of a file; nil if there is none. Not a call.
  public func contents(of path: String) -> [UInt8]? {
    withState { state in
      guard let node = state.node(at: path), !state.nodes[node].isDirectory else { return nil }
      return state.nodes[node].image.bytes
    }
  }

  /// How many bytes all files together have. Not a call.
  public var totalSize: Int {
    withState { state in
      var total = 0
      func visit(_ node: Int) {
        total += state.nodes[node].image.size
        state.nodes[node].entries.forEach { visit($1) }
      }
      visit(DiskNode.root)
      return total
    }
  }

  /// Replaces bytes of a file behind the program's back, durably, as a failing medium would; bytes
  /// past the end make it longer. Returns false if there is no such file. Not a call.
  @discardableResult
  public func overwrite(_ path: String, at offset: Int, with bytes: [UInt8]) -> Bool {
    change(path) { image in bytes.withUnsafeBytes { image.write($0, at: offset) } }
  }

  /// Flips one bit of a file behind the program's back; bit 0 is the lowest of the first byte.
  /// Returns false if there is no such file or bit. Not a call.
  @discardableResult
  public func flipBit(_ bit: Int, of path: String) -> Bool {
    var isThere = false
    let isFile = change(path) { image in
      let (place, shift) = bit.quotientAndRemainder(dividingBy: 8)
      guard bit >= 0, place < image.size else { return }
      isThere = true
      withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { buffer in
        _ = image.read(into: buffer, at: UInt64(place))
        buffer[0] ^= 1 << UInt8(shift)
        image.write(UnsafeRawBufferPointer(buffer), at: place)
      }
    }
    return isFile && isThere
  }

  /// Cuts or lengthens a file behind the program's back. Returns false if there is no such file.
  @discardableResult
  public func resize(_ path: String, to size: Int) -> Bool {
    change(path) { $0.truncate(to: max(0, size)) }
  }

  /// Takes a name away behind the program's back. Returns false if there is none. Not a call.
  @discardableResult
  public func erase(_ path: String) -> Bool {
    let names = Name.components(of: path)
    guard let name = names.last else { return false }
    return withState { state in
      guard let directory = state.node(at: names.dropLast().map(\.string).joined(separator: "/"))
      else { return false }
      if directory < state.base.count { state.base[directory].entries.remove(name) }
      return state.nodes[directory].entries.remove(name) != nil
    }
  }

  private func change(_ path: String, _ body: (inout FileImage) -> Void) -> Bool {
    withState { state in
      guard let node = state.node(at: path), !state.nodes[node].isDirectory else { return false }
      body(&state.nodes[node].image)
      if node < state.base.count { body(&state.base[node].image) }
      return true
    }
  }
}

extension SimulatedDisk: FileSystem {
  package func createDirectory(_ path: String) throws(SystemError) {
    try withState { (state) throws(SystemError) in try state.createDirectory(path) }
  }

  package func list(_ directory: String) throws(SystemError) -> [String] {
    try withState { (state) throws(SystemError) in try state.list(directory) }
  }

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    let (node, handle) = try withState { (state) throws(SystemError) in
      try state.open(path, mode)
    }
    return SimulatedFile(self, node: node, handle: handle, path: path, isWritable: mode != .read)
  }

  package func rename(_ from: String, to: String) throws(SystemError) {
    try withState { (state) throws(SystemError) in try state.rename(from, to: to) }
  }

  package func remove(_ path: String) throws(SystemError) {
    try withState { (state) throws(SystemError) in try state.remove(path) }
  }

  package func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    let node = try withState { (state) throws(SystemError) in try state.openDirectory(path) }
    return SimulatedDirectory(self, node: node, path: path)
  }

  /// Opens a directory and synchronizes it: two calls.
  package func synchronizeDirectory(_ path: String) throws(SystemError) {
    try openDirectory(path).synchronize()
  }

  package func identity(_ path: String) throws(SystemError) -> FileIdentity {
    try withState { (state) throws(SystemError) in try state.identity(path) }
  }

  package func watch(_ directory: String) -> (any DirectoryWatch)? {
    guard let found = withState({ $0.watch(directory) }) else { return nil }
    return SimulatedWatch(self, node: found.node, path: directory, changeCount: found.changeCount)
  }
}
