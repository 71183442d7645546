import DendroEngine
import DendroPlatform
import DendroTree
import Dispatch
import Synchronization

/// The transactions of a database. They run in the order in which they were started, on threads that are neither the
/// caller's nor the callback queue's, and hold their database open until they have ended.
///
/// As long as blocks are quick, one runs after the other. Behind one that is slow, those at locations that have nothing in
/// common with its own go on, on another thread; those at related locations wait.
final class TransactionQueue: Sendable {
  /// Transactions that may wait: starting more waits too.
  static let limit = 16_384
  /// Blocks that may run at the same time.
  static let blockLimit = 64
  /// How long a block may take before others that have nothing in common with it go on beside it.
  private static let slow = Duration.milliseconds(100)
  /// One transaction, or an operation of a server that runs as one.
  final class Job: Sendable {
    let path: Path
    /// Runs it. Called once at most.
    let run: @Sendable () -> Void
    /// Ends it with an error unless its decision may have been admitted, and also while its block runs.
    let withdraw: @Sendable (DatabaseError) -> Void
    /// Whether it takes one of the places of those that wait.
    fileprivate let hasPlace: Bool
    fileprivate let started = ContinuousClock.now

    init(
      at path: Path, hasPlace: Bool, run: @escaping @Sendable () -> Void,
      withdraw: @escaping @Sendable (DatabaseError) -> Void
    ) {
      self.path = path
      self.hasPlace = hasPlace
      self.run = run
      self.withdraw = withdraw
    }
  }

  /// One whose block runs.
  private struct Running {
    let entry: TransactionSchedule.Entry
    let thread = pthread_self()
    let begun = ContinuousClock.now
    var isSlow = false
    var isReported = false
  }

  private struct State {
    var schedule = TransactionSchedule()
    /// Those that wait for a thread only. The one that was started first is next, so that all run in the order of their
    /// starts as long as none is slow.
    var ready = Heap<TransactionSchedule.Entry> { $0.number < $1.number }
    var running: [Running] = []
    /// Those that wait for others, by identity: for closing and for time limits.
    var waiting: [ObjectIdentifier: TransactionSchedule.Entry] = [:]
    /// Threads that were asked for.
    var threadCount = 0
    var idleThreads: [DispatchQueue] = []
    var isWatched = false
    var isClosed = false

    /// Those that have not begun, in the order in which they were started.
    var left: [TransactionSchedule.Entry] {
      (ready.all + waiting.values).sorted { $0.number < $1.number }
    }
  }

  private let state = Mutex(State())
  /// One signal for each free place in the queue. Starts at 0, since a semaphore must not be freed with a
  /// lower value than it was made with.
  private let places = DispatchSemaphore(value: 0)
  private let timeLimit: Duration?
  private let reportTime: Duration
  private let log: @Sendable (LogEvent) -> Void
  private static let watch = DispatchQueue(label: "dendro.transactions.watch")

  /// - Parameters:
  ///   - timeLimit: how long a transaction may take from its start on; nil: as long as it needs.
  ///   - reportTime: how long a block may take before `log` gets a line on it.
  init(
    timeLimit: Duration?, reportTime: Duration, log: @escaping @Sendable (LogEvent) -> Void
  ) {
    self.timeLimit = timeLimit
    self.reportTime = reportTime
    self.log = log
    for _ in 0..<Self.limit { places.signal() }
  }

  // MARK: Starting

  /// Takes a place for one that is about to be started.
  ///
  /// - Parameter mayWait: false in a transaction's block, if no place becomes free meanwhile.
  /// - Returns: false if there is no place.
  func takePlace(mayWait: Bool) -> Bool {
    if mayWait {
      places.wait()
      return true
    }
    return places.wait(timeout: .now()) == .success
  }

  /// Starts one: runs it once it may run.
  func start(_ job: Job) {
    let entry = TransactionSchedule.Entry(at: job.path, job)
    let isClosed = state.withLock { state in
      if state.isClosed { return true }
      let thread = pthread_self()
      let starter = state.running.first { pthread_equal($0.thread, thread) != 0 }
      if state.schedule.add(entry, startedBy: starter?.entry) {
        state.ready.insert(entry)
      } else {
        state.waiting[ObjectIdentifier(entry)] = entry
      }
      goOn(&state)
      return false
    }
    if isClosed { runAtOnce(entry) }
  }

  /// The database is closed: fails.
  private func runAtOnce(_ entry: TransactionSchedule.Entry) {
    if entry.job.hasPlace { places.signal() }
    entry.job.run()
  }

  /// Those that wait or run.
  var count: Int {
    state.withLock { $0.waiting.count + $0.ready.all.count + $0.running.count }
  }

  // MARK: Threads

  /// Has a thread go on if one is ready, and no other thread is about to take it soon.
  private func goOn(_ state: inout State) {
    let quickCount = state.threadCount - state.running.count { $0.isSlow }
    guard !state.ready.isEmpty, quickCount == 0, state.threadCount < Self.blockLimit else { return }
    state.threadCount += 1
    let thread =
      state.idleThreads.popLast()
      ?? DispatchQueue(label: ThreadName.transactions.rawValue, autoreleaseFrequency: .workItem)
    thread.async { self.work(on: thread) }
  }

  /// Runs those that are ready, until there are none, or another thread does.
  private func work(on thread: DispatchQueue) {
    while let entry = take(thread) {
      if entry.job.hasPlace { places.signal() }
      ThreadName.transactions.during { entry.job.run() }
      end(entry)
    }
  }

  private func take(_ thread: DispatchQueue) -> TransactionSchedule.Entry? {
    state.withLock { state in
      // A thread that was slow, and for which another one came, ends with its block.
      let quickCount = state.threadCount - state.running.count { $0.isSlow }
      guard let entry = quickCount > 1 ? nil : state.ready.popFirst() else {
        state.threadCount -= 1
        state.idleThreads.append(thread)
        return nil
      }
      state.running.append(Running(entry: entry))
      watch(&state)
      return entry
    }
  }

  private func end(_ entry: TransactionSchedule.Entry) {
    state.withLock { state in
      state.running.removeAll { $0.entry === entry }
      for entry in state.schedule.end(entry) {
        // One that was withdrawn by closing has run.
        guard state.waiting.removeValue(forKey: ObjectIdentifier(entry)) != nil else { continue }
        state.ready.insert(entry)
      }
    }
  }

  // MARK: What takes long

  /// Looks after what runs, ten times a second as long as something does.
  private func watch(_ state: inout State) {
    if state.isWatched { return }
    state.isWatched = true
    Self.watch.asyncAfter(deadline: .now() + .milliseconds(100)) { [weak self] in
      ThreadName.transactions.during { self?.look() }
    }
  }

  private func look() {
    let now = ContinuousClock.now
    var lines: [LogEvent] = []
    var late: [Job] = []
    state.withLock { state in
      state.isWatched = false
      if state.running.isEmpty { return }
      for index in state.running.indices {
        let duration = now - state.running[index].begun
        if duration >= Self.slow { state.running[index].isSlow = true }
        if duration >= reportTime, !state.running[index].isReported {
          state.running[index].isReported = true
          let waitingCount = state.waiting.count
          lines.append(
            LogEvent(
              .warning,
              "the block of a transaction has been running for \(reportTime)",
              [
                "location": "\(state.running[index].entry.job.path)", "waiting": "\(waitingCount)",
              ]))
        }
      }
      if let timeLimit {
        late = (state.running.map(\.entry) + state.left).map(\.job)
          .filter { now - $0.started >= timeLimit }
      }
      goOn(&state)
      watch(&state)
    }
    for line in lines { log(line) }
    guard let timeLimit else { return }
    for job in late { job.withdraw(.timedOut(job.path, timeLimit)) }
  }

  // MARK: Closing

  /// Ends all, once the engine is closed: those that wait, and those whose blocks still run.
  func close() {
    let (running, others) = state.withLock { state in
      state.isClosed = true
      defer {
        state.ready.removeAll()
        state.waiting = [:]
      }
      return (state.running.map(\.entry), state.left)
    }
    for entry in running { entry.job.withdraw(.closed) }
    for entry in others { runAtOnce(entry) }
  }
}
