import Dendro
import DendroPlatform
import DendroProtocol
import DendroTree
import Dispatch
import Synchronization

/// A database's side of the connection to its server: the data that it keeps in step, and what waits for an answer.
///
/// All calls are steps of one dialogue, under one lock. What they bring about goes to the listeners' queues in the same
/// order, and to the thread that has the connection. Nothing of the application's is called under the lock.
final class SyncClient: Remote {
  let observer: any RemoteObserver
  let state: Mutex<State>
  let loop: SyncLoop
  /// How many bytes are kept of what nothing listens to.
  let cacheByteCount: @Sendable () -> Int
  /// What is kept in step all the time.
  let mirror: [QueryTarget]

  struct State: Sendable {
    var dialogue = SyncDialogue(software: "sdk.dendro.0-1-0")
    /// What is to be sent over the connection that is ready.
    var outgoing: [[UInt8]] = []
    /// What keeps what is to survive; nil if nothing is.
    var store: SyncStore?
    /// The completions of writes of this run.
    var writes: [Int: @Sendable (DatabaseError?) -> Void] = [:]
    /// What waits until the write with this number and those before it are answered.
    var afterWrites: [(last: Int, completion: @Sendable () -> Void)] = []
    var reads: [Int: (target: QueryTarget, completion: Read)] = [:]
    var transactions: [Int: Running] = [:]
    /// Those whose threads wait to run their blocks.
    var startingTransactions: Set<Int> = []
    var registrations: [Int: Registered] = [:]
    /// What the server writes once the connection ends.
    var onDisconnect = DisconnectOperations()
    var identity = Identity()
    var isOnline = true
    var isClosed = false
    /// Whether the database was used, or what is in its directory is to be sent or kept in step anyway. The client does not
    /// connect before.
    var isStarted = false
    /// How many milliseconds the server's clock is ahead of this one.
    var timeOffset: Int64 = 0
    /// What the server's clock has shown when it greeted, and when that was.
    var greeting: (time: Int64, moment: ContinuousClock.Instant)?
    var isConnected = false
    /// The number of the present connection, or of the last one.
    var line = 0
    /// Whether there is one, though the server may not have greeted yet.
    var isOpen = false
    /// Names the last connection to the server.
    var session: String?
  }

  typealias Read = @Sendable (Result<Node, DatabaseError>) -> Void

  /// A transaction that has not ended.
  final class Running: Sendable {
    let transaction: RemoteTransaction
    /// What the thread that has started it is to do next.
    private let next = Mutex<Next?>(nil)
    private let wakes = DispatchSemaphore(value: 0)

    enum Next: Sendable {
      case run(Node)
      case leave
    }

    init(_ transaction: RemoteTransaction) { self.transaction = transaction }

    /// Waits for the block to be run, on the thread that has started the transaction.
    func wait() -> Next {
      wakes.wait()
      return next.withLock { $0 } ?? .leave
    }

    func tell(_ what: Next) {
      next.withLock { $0 = what }
      wakes.signal()
    }
  }

  struct Registered: Sendable {
    /// What is registered; nil for a cancellation of what is registered at the path.
    let draft: Draft?
    let path: Path
    let completion: @Sendable (DatabaseError?) -> Void
  }

  /// How long a read waits for a connection, in seconds.
  private static let readTimeout = 3
  static let timers = DispatchQueue(label: "dendro.sync.timers")

  init(
    _ setup: RemoteSetup, trusting trust: TrustedCertificates? = nil,
    limits: SyncLimits = SyncLimits(), _ observer: any RemoteObserver
  ) {
    self.observer = observer
    cacheByteCount = setup.cacheByteCount
    mirror = setup.mirror.map { QueryTarget($0) }
    var state = State()
    if let files = setup.files {
      state.restore(from: SyncStore(files))
    } else {
      state.dialogue.numbering = WriteNumbering(
        client: Self.drawHexadecimal(byteCount: 16), incarnation: Self.drawHexadecimal(byteCount: 8)
      )
    }
    // Where a user was signed in, the program will sign in again: before that the server would refuse what is kept for him.
    let startsAlone =
      state.store?.lastUser == nil && !(mirror.isEmpty && state.dialogue.pendingWrites.isEmpty)
    self.state = Mutex(state)
    loop = SyncLoop(setup.address, trusting: trust, limits: limits)
    observer.showInfo(isConnected: false, timeOffset: 0, isAuthenticated: false)
    for target in mirror { keep(target, true) }
    self.state.withLock { $0.isStarted = startsAlone }
    loop.start(self)
  }

  // MARK: Steps

  /// What is done once the lock is released.
  struct Due {
    var calls: [() -> Void] = []
    var runs: [(id: Int, input: Node)] = []
    var wakes = false
    var command: SyncLoop.Command?
  }

  /// Takes a step, and does what it brings about.
  @discardableResult
  func step<R: Sendable>(_ body: (inout State, inout Due) -> R) -> R {
    var due = Due()
    let result = state.withLock { state in
      let isFirst = !state.isStarted
      state.isStarted = true
      let result = body(&state, &due)
      save(&state, &due)
      due.wakes = due.wakes || isFirst || !state.outgoing.isEmpty
      return result
    }
    if let command = due.command { loop.obey(command) } else if due.wakes { loop.wake() }
    observer.handOver()
    for call in due.calls { call() }
    for run in due.runs { self.run(run.id, on: run.input) }
    return result
  }

  func reading<R: Sendable>(_ body: (State) -> R) -> R { state.withLock { body($0) } }

  // MARK: Writing

  func write(_ draft: Draft, completion: @escaping @Sendable (DatabaseError?) -> Void) {
    step { state, due in
      guard !state.isClosed else { return due.calls.append { completion(.closed) } }
      let write = SyncWrite(draft, time: state.time, over: state.dialogue.tree)
      // The disk comes first: what it does not take was never written.
      if let error = keep(write, &state) { return due.calls.append { completion(error) } }
      let (number, effects) = state.dialogue.write(write)
      state.writes[number] = completion
      perform(effects, &state, &due)
    }
  }

  func afterPendingWrites(_ completion: @escaping @Sendable () -> Void) {
    step { state, due in
      let last = state.dialogue.lastWrite
      if state.isClosed || !state.dialogue.isWaiting(upTo: last) {
        return due.calls.append(completion)
      }
      state.afterWrites.append((last, completion))
    }
  }

  func purge() {
    step { state, due in perform(state.dialogue.purge(), &state, &due) }
  }

  func pendingWrites() -> [RemoteWrite] {
    reading { state in
      state.dialogue.pendingWrites.map { number, write in
        var userID: String?
        if case .user(let id) = write.user { userID = id }
        return RemoteWrite(
          number: number, path: write.draft.write.path, time: write.time, userID: userID,
          state: write.isHeld ? .decision : write.user == state.dialogue.user ? .answer : .user)
      }
    }
  }

  func release(write number: Int) {
    step { state, due in
      state.store?.mark(write: number, SyncRecords.held, .empty)
      perform(state.dialogue.release(write: number), &state, &due)
    }
  }

  func drop(write number: Int) {
    step { state, due in perform(state.dialogue.drop(write: number), &state, &due) }
  }

  // MARK: Transactions

  func transact(_ transaction: RemoteTransaction) {
    let running = Running(transaction)
    let id = step { state, due -> Int? in
      guard !state.isClosed else {
        due.calls.append { transaction.completion(.failed(.closed)) }
        return nil
      }
      let (id, effects) = state.dialogue.transact(
        at: transaction.path, isVisible: transaction.isVisible)
      state.transactions[id] = running
      state.startingTransactions.insert(id)
      perform(effects, &state, &due)
      return id
    }
    // The block runs here until it has decided: the application's transactions have threads of their own.
    while let id, case .run(let input) = running.wait() {
      if decide(id, running, on: input) { break }
    }
    step { state, _ in if let id { state.startingTransactions.remove(id) } }
  }

  /// Has a transaction's block run: by the thread that has started it, if that waits, or else on another one.
  private func run(_ id: Int, on input: Node) {
    let (running, isStarting) = state.withLock { state in
      (state.transactions[id], state.startingTransactions.contains(id))
    }
    guard let running else { return }
    if isStarting { return running.tell(.run(input)) }
    // Not a queue of several threads, which an application may have blocked all.
    DispatchQueue(label: "dendro.sync.block").async { [self] in
      _ = decide(id, running, on: input)
    }
  }

  /// Runs a transaction's block.
  ///
  /// - Returns: whether it has decided, and need not be run again at once.
  private func decide(_ id: Int, _ running: Running, on input: Node) -> Bool {
    let decision = running.transaction.run(input)
    return step { state, due in
      let effects =
        switch decision {
        case .write(let draft): state.dialogue.decided(id, .write(draft, time: state.time))
        case .abort: state.dialogue.decided(id, .abort)
        case .ended: state.dialogue.decided(id, .nothing)
        }
      if case .ended = decision { state.transactions[id] = nil }
      let isDecided = !effects.contains {
        if case .run(id, _) = $0 { true } else { false }
      }
      if isDecided { state.startingTransactions.remove(id) }
      perform(effects, &state, &due)
      return isDecided
    }
  }

  // MARK: Reading and listening

  func read(
    _ target: QueryTarget, completion: @escaping @Sendable (Result<Node, DatabaseError>) -> Void
  ) {
    step { state, due in
      guard !state.isClosed else { return due.calls.append { completion(.failure(.closed)) } }
      if let node = state.dialogue.tree.shown(by: target) {
        return due.calls.append { completion(.success(node)) }
      }
      guard state.isOnline else {
        let result = state.kept(target)
        return due.calls.append { completion(result) }
      }
      let (number, effects) = state.dialogue.read(target)
      state.reads[number] = (target, completion)
      perform(effects, &state, &due)
      limit(number)
    }
  }

  /// Gives up a read if there is no connection after some time.
  private func limit(_ number: Int) {
    Self.timers.asyncAfter(deadline: .now() + .seconds(Self.readTimeout)) { [weak self] in
      self?.step { state, due in if !state.isConnected { state.giveUp([number], &due) } }
    }
  }

  /// Gives up the reads without an answer if there is no connection again after some time, or at once.
  func limitReads(_ state: inout State, _ due: inout Due) {
    if !state.isOnline { return state.giveUp(state.reads.keys.sorted(), &due) }
    for number in state.reads.keys { limit(number) }
  }

  func listen(_ use: RemoteUse, begun: (Known) -> Void) {
    step { state, due in
      let effects = state.dialogue.begin(use.target, for: .listener(use.id))
      begun(state.known(of: use.target))
      perform(effects, &state, &due)
    }
  }

  func end(_ uses: [RemoteUse]) {
    step { state, due in
      for use in uses {
        perform(state.dialogue.end(use.target, for: .listener(use.id)), &state, &due)
      }
    }
  }

  func keep(_ target: QueryTarget, _ isKept: Bool) {
    step { state, due in
      let effects =
        isKept
        ? state.dialogue.begin(target, for: .kept) : state.dialogue.end(target, for: .kept)
      perform(effects, &state, &due)
    }
  }

  // MARK: Disconnecting

  func registerOnDisconnect(
    _ draft: Draft, completion: @escaping @Sendable (DatabaseError?) -> Void
  ) {
    register(Registered(draft: draft, path: draft.write.path, completion: completion)) {
      $0.registerOnDisconnect(draft)
    }
  }

  func cancelOnDisconnect(
    _ path: Path, completion: @escaping @Sendable (DatabaseError?) -> Void
  ) {
    register(Registered(draft: nil, path: path, completion: completion)) {
      $0.cancelOnDisconnect(path)
    }
  }

  private func register(
    _ registered: Registered,
    _ send: (inout SyncDialogue) -> (number: Int, effects: [SyncDialogue.Effect])
  ) {
    step { state, due in
      guard !state.isClosed else {
        return due.calls.append { registered.completion(.closed) }
      }
      let (number, effects) = send(&state.dialogue)
      state.registrations[number] = registered
      perform(effects, &state, &due)
    }
  }

  func use() { step { _, _ in } }

  func goOnline() {
    step { state, due in
      state.isOnline = true
      due.command = .connect
    }
  }

  func goOffline() {
    step { state, due in
      state.isOnline = false
      due.command = .disconnect
      leave(&state, &due)
      limitReads(&state, &due)
    }
  }

  func close() {
    step { state, due in
      guard !state.isClosed else { return }
      state.isClosed = true
      // Once more, also if the disk has just refused something.
      state.store?.isRefused = false
      save(&state, &due)
      let error = state.store == nil ? DatabaseError.closed : .pending
      for (_, completion) in state.writes.sorted(by: { $0.key < $1.key }) {
        due.calls.append { completion(error) }
      }
      for read in state.reads.values { due.calls.append { read.completion(.failure(.closed)) } }
      for id in state.transactions.keys.sorted() {
        guard let running = state.transactions[id] else { continue }
        due.calls.append {
          running.transaction.completion(.failed(.closed))
          running.tell(.leave)
        }
      }
      for registered in state.registrations.values {
        due.calls.append { registered.completion(.closed) }
      }
      for waiting in state.afterWrites { due.calls.append(waiting.completion) }
      state.writes = [:]
      state.reads = [:]
      state.transactions = [:]
      state.registrations = [:]
      state.afterWrites = []
      state.identity.end(&due)
      due.command = .end
    }
  }
}

extension SyncClient.State {
  /// Whether a connection is wanted.
  var mayConnect: Bool { isStarted && isOnline && !isClosed && identity.mayConnect }

  /// The server's time in milliseconds since 1970, as far as it is known.
  var time: Int64 { SyncClient.clock() + timeOffset }

  /// Gives up reads that have no answer.
  fileprivate mutating func giveUp(_ numbers: [Int], _ due: inout SyncClient.Due) {
    for number in numbers {
      guard let read = reads.removeValue(forKey: number) else { continue }
      dialogue.giveUp(read: number)
      let result = kept(read.target)
      due.calls.append { read.completion(result) }
    }
  }

  /// What is kept of a target, where the server cannot be asked.
  fileprivate func kept(_ target: QueryTarget) -> Result<Node, DatabaseError> {
    dialogue.tree.kept(target).map { .success($0) } ?? .failure(.offline)
  }

  fileprivate func known(of target: QueryTarget) -> Known {
    let visible = dialogue.tree.visible(target)
    return Known(visible?.node ?? .empty, isComplete: visible?.isComplete ?? false)
  }
}

extension SyncClient {
  static func drawHexadecimal(byteCount: Int) -> String {
    hexadecimal((0..<byteCount).map { _ in UInt8.random(in: .min ... .max) })
  }

  /// This machine's time in milliseconds since 1970.
  static func clock() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }
}

extension DatabaseError {
  static let offline = DatabaseError(.unavailable, "Offline", "Client is offline.")

  init(_ refusal: SyncRefusal) {
    let code: Code =
      switch refusal.status {
      case "permission_denied", "expired_token", "invalid_token": .permissionDenied
      case "unavailable": .unavailable
      case "write_canceled": .canceled
      default: .maxRetry
      }
    self.init(
      code, refusal.status,
      refusal.text.isEmpty ? "the server says \(refusal.status)" : refusal.text)
  }
}
