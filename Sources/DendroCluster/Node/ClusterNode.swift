import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// A server's part in the cluster, for one namespace: it takes what the leader has appended, or leads.
///
/// One thread looks at PostgreSQL. Batches of a server that leads are appended on the threads that have the engine's turn
/// (`Leadership`). The engine holds the node, and the node the engine as long as the thread uses it.
final class ClusterNode: SharedLog {
  let settings: ClusterSettings
  let copy: CopyFile
  let leadership: Leadership
  let forwarding: Forwarding
  let interruption: Interruption
  let environment: Environment
  /// Of the server; absolute.
  let directory: String
  let publisher: CheckpointPublisher
  /// To other servers; nil if there are none.
  let lines: ServerLines?
  let leaderLine: LeaderLine?
  let verifier = Verifier()
  private let report: @Sendable (LogEvent) -> Void
  private let engine = Mutex(WeakEngine())
  private let status: Mutex<Status>
  /// Signalled when the thread is to look at once.
  private let condition: Condition
  /// Signalled when the status changes.
  private let changes = Condition()
  /// Whether the thread knows that the engine is being closed.
  let hasSeenClosing = Atomic<Bool>(false)
  private let requestHandler = Mutex(WeakHandler())
  /// While this server leads.
  private let peers = Mutex<Peers?>(nil)
  private let currentRequests = Mutex<Requests?>(nil)

  private struct WeakHandler {
    weak var value: (any SharedRequestHandler)?
    /// Whether there ever was one.
    var wasThere = false
  }

  private struct WeakEngine {
    weak var value: Engine?
    /// False while the directory is looked at. An engine that is closed then is not the server's.
    var isStarted = false
  }

  /// What the thread has found.
  struct Status: Sendable {
    var role = Role.opening
    var epoch: Int64 = 0
    var leader: ServerID?
    var leaderAddress = ""
    /// The last write in the shared log, as far as this server knows.
    var sharedLSN = LogSequenceNumber.zero
    /// The last write that was taken from it.
    var takenLSN = LogSequenceNumber.zero
    var takeoverCount: UInt64 = 0
    /// Whether the thread has ended.
    var hasLeft = false
    /// Why PostgreSQL cannot be reached; nil if it can.
    var trouble: String?
  }

  enum Role: Hashable, Sendable {
    case opening
    case following
    case leading
    /// The thread has ended: the server shows what it has.
    case stopped(String)
  }

  init(
    _ settings: ClusterSettings, _ copy: CopyFile, directory: String, _ lines: ServerLines?,
    _ environment: Environment, report: @escaping @Sendable (LogEvent) -> Void
  ) throws(ClusterError) {
    self.settings = settings
    self.copy = copy
    self.environment = environment
    self.directory = directory
    self.report = report
    forwarding = Forwarding(client: settings.client)
    status = Mutex(Status())
    let condition = Condition()
    self.condition = condition
    self.lines = lines
    leaderLine = lines.map { LeaderLine($0, settings) { condition.signal() } }
    do throws(PostgresError) {
      interruption = try Interruption()
      publisher = try CheckpointPublisher()
      leadership = try Leadership(settings, copy, environment.randomness) { condition.signal() }
    } catch {
      throw .postgres(error)
    }
  }

  var currentStatus: Status { status.withLock { $0 } }

  /// Begins to follow, on a thread of its own.
  ///
  /// - Parameter position: where the engine's copy of the log ends; its chain is nil if that is within a batch.
  func start(_ engine: Engine, at position: CopyPosition) {
    self.engine.withLock { $0 = WeakEngine(value: engine, isStarted: true) }
    let thread = Thread { [self] in
      var loop = ClusterLoop(self, at: position)
      loop.run()
      update { $0.hasLeft = true }
    }
    thread.name = "dendro-cluster"
    thread.start()
  }

  /// Waits until this server leads, or follows one that does, and has all that the log had.
  ///
  /// - Throws: why it does neither.
  func waitUntilInStep(_ limit: Duration) throws(ClusterError) {
    var deadline = ContinuousClock.now + limit
    var takenLSN = LogSequenceNumber.zero
    while true {
      let seen = changes.signalCount
      let status = currentStatus
      switch status.role {
      case .leading, .following: return
      case .stopped(let reason): throw .files(reason)
      case .opening: break
      }
      // A long log takes its time.
      if status.takenLSN > takenLSN {
        takenLSN = status.takenLSN
        deadline = .now + limit
      }
      guard changes.wait(behind: seen, until: deadline) else {
        throw .engine(
          .unavailable(status.trouble ?? "PostgreSQL does not answer"))
      }
    }
  }

  // MARK: For the thread

  func withEngine<R>(_ body: (Engine) throws(ClusterError) -> R) throws(ClusterError) -> R {
    guard let engine = engine.withLock({ $0.value }) else { throw .engine(.closed) }
    return try body(engine)
  }

  func update(_ change: (inout Status) -> Void) {
    status.withLock { change(&$0) }
    changes.signal()
  }

  func record(_ event: LogEvent) {
    // In the order of the engine's own events.
    guard let engine = engine.withLock({ $0.value }) else { return report(event) }
    engine.record(event)
  }

  /// What makes requests of other servers while this one leads.
  ///
  /// - Parameter gone: the server that led before and stood still; nil if it has left.
  func requests(_ epoch: Epoch, _ engine: Engine, gone: Peers.Row?) -> Requests {
    peers.withLock { $0 = Peers(gone: gone) }
    return Requests(epoch, engine) { [weak self] in
      self?.requestHandler.withLock { ($0.value, $0.wasThere) } ?? (nil, true)
    } changed: { [condition] in
      condition.signal()
    }
  }

  /// What other servers have passed on to this one; nil while it does not lead.
  var requests: Requests? { currentRequests.withLock { $0 } }

  /// Lets other servers open lines to this one, which leads, or to none.
  func setRequests(_ requests: Requests?) {
    let old = currentRequests.withLock { current in
      defer { current = requests }
      return current
    }
    if let old {
      lines?.remove(old, of: settings.namespace)
      old.closeLines()
    }
    if let requests { lines?.add(requests, of: settings.namespace) }
  }

  /// How many other servers have a line to this one while it leads; 1 if this one has a line to the leader.
  var lineCount: Int {
    requests?.lineCount
      ?? (leaderLine?.isOpen == true ? 1 : 0)
  }

  func note(_ servers: [Peers.Row]) {
    peers.withLock { $0?.note(servers, interval: settings.beatInterval) }
  }

  /// How many servers are there, with this one, as this one sees it while it leads.
  var liveCount: Int { peers.withLock { $0?.liveCount(within: settings.takeoverDelay) ?? 1 } }

  /// How often the thread was to look at once.
  var signalCount: UInt64 { condition.signalCount }

  /// Sleeps until the thread is to look at once, or the time is over.
  ///
  /// - Parameter seen: the count when it looked last.
  func sleep(_ duration: Duration, behind seen: UInt64) {
    _ = condition.wait(behind: seen, until: .now + duration)
  }

  // MARK: The engine's shared log

  func append(_ records: [SharedRecord]) throws(SharedLogFailure) {
    var wanted: HistoryState?
    if publisher.wantsState, let last = records.last { wanted = state(at: last.lastLSN) }
    let kept = wantedRoots(at: records.last?.lastLSN)
    let batch = try leadership.append(records)
    keepRoots(kept, at: records.last?.lastLSN)
    // Now it stands.
    if let batch { requests?.stream(batch) }
    if let wanted, let position = leadership.position { publisher.offer(wanted, at: position) }
  }

  func forward(_ write: EncodedWrite, _ completion: @escaping Completion) -> Bool {
    guard forwarding.add(write, completion) else { return false }
    condition.signal()
    return true
  }

  func forward(
    _ write: EncodedWrite, from input: Node, _ completion: @escaping SharedRequestCompletion
  ) -> Bool {
    let content = ForwardedWrite.Content.result(write, of: TransactionInput(input))
    guard forwarding.add(content, completion) else { return false }
    condition.signal()
    return true
  }

  func completion(of origin: WriteOrigin, in data: () -> Node) -> Completion? {
    forwarding.completion(of: origin, in: data)
  }

  var passesOn: Bool { forwarding.isOpen }

  func tick() {
    forwarding.expire()
    forwarding.giveUp()
  }

  var knownLSN: LogSequenceNumber {
    max(currentStatus.sharedLSN, leadership.position?.lsn ?? .zero)
  }

  func pass(
    _ request: SharedRequest, origin: WriteOrigin?, _ completion: @escaping SharedRequestCompletion
  ) -> Bool {
    guard forwarding.add(.request(request), origin: origin, completion) else { return false }
    condition.signal()
    return true
  }

  func handleRequests(with handler: (any SharedRequestHandler)?) {
    requestHandler.withLock { state in
      state.value = handler
      state.wasThere = state.wasThere || handler != nil
    }
  }

  var opening: String { ClusterSettings.openingText(of: settings.client) }

  func hasEnded(_ opening: Substring) -> Bool {
    guard opening != self.opening, leadership.epoch != nil else { return false }
    return peers.withLock { peers in
      peers?.hasEnded(String(opening), after: settings.takeoverDelay) ?? false
    }
  }

  func engineCloses() {
    guard isStarted else { return }
    publisher.stop()
    leadership.engineCloses()
    // The thread may be waiting for a PostgreSQL that does not answer.
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(500)) { [self] in
      if !hasSeenClosing.load(ordering: .acquiring) { interruption.set() }
    }
  }

  func engineClosed() {
    guard isStarted else { return }
    leadership.engineClosed()
    // A program that ends next would end the thread before it has left the leading to another server.
    let deadline = ContinuousClock.now + .seconds(1)
    while true {
      let seen = changes.signalCount
      if currentStatus.hasLeft || !changes.wait(behind: seen, until: deadline) { return }
    }
  }

  private var isStarted: Bool { engine.withLock { $0.isStarted } }
}
