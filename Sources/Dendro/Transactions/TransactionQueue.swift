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
  /// One that runs.
  struct Running {
    let entry: TransactionSchedule.Entry
    let thread = pthread_self()
    var isSlow = false
    var isReported = false
    var isLate = false
  }

  struct State {
    var schedule = TransactionSchedule()
    /// Those that wait for a thread only. The one that was started first is next, so that all run in the order of their
    /// starts as long as none is slow.
    var ready = Heap<TransactionSchedule.Entry> { $0.number < $1.number }
    var running: [Running] = []
    /// All that have not begun, by their jobs.
    var waiting: [ObjectIdentifier: TransactionSchedule.Entry] = [:]
    /// Threads that were asked for.
    var threadCount = 0
    var idleThreads: [DispatchQueue] = []
    var isWatched = false
    var isClosed = false
  }

  let state = Mutex(State())
  /// One signal for each free place in the queue. Starts at 0, since a semaphore must not be freed with a
  /// lower value than it was made with.
  private let places = DispatchSemaphore(value: 0)
  let timeLimit: Duration?
  let reportTime: Duration
  let log: @Sendable (LogEvent) -> Void

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
  func start(_ job: TransactionJob) {
    let entry = TransactionSchedule.Entry(job)
    let isClosed = state.withLock { state in
      if state.isClosed { return true }
      let thread = pthread_self()
      let starter = state.running.first { pthread_equal($0.thread, thread) != 0 }
      state.waiting[ObjectIdentifier(job)] = entry
      if state.schedule.add(entry, startedBy: starter?.entry) { state.ready.insert(entry) }
      goOn(&state)
      return false
    }
    if isClosed { runAtOnce(job) }
  }

  /// The database is closed: fails.
  private func runAtOnce(_ job: TransactionJob) {
    if job.hasPlace { places.signal() }
    job.run()
  }

  /// Ends one with an error unless its decision may have been admitted. One that has not begun leaves the queue, and frees
  /// what it holds.
  func withdraw(_ job: TransactionJob, _ error: any Error) {
    job.withdraw(error)
    let (waits, leaves) = state.withLock { state in
      guard let entry = state.waiting[ObjectIdentifier(job)] else { return (false, false) }
      let isReady = entry.isReady
      guard let next = state.schedule.withdraw(entry) else { return (true, false) }
      state.waiting[ObjectIdentifier(job)] = nil
      if isReady { state.ready.removeAll { $0 === entry } }
      for entry in next { state.ready.insert(entry) }
      goOn(&state)
      return (true, true)
    }
    if waits { job.discard() }
    if leaves, job.hasPlace { places.signal() }
  }

  /// Whether the calling thread runs one.
  var isRunningHere: Bool {
    let thread = pthread_self()
    return state.withLock { state in
      state.running.contains { pthread_equal($0.thread, thread) != 0 }
    }
  }

  /// Those that wait or run.
  var count: Int { state.withLock { $0.waiting.count + $0.running.count } }

  // MARK: Threads

  /// Has a thread go on if one is ready, and no other thread is about to take it soon.
  func goOn(_ state: inout State) {
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
      state.waiting[ObjectIdentifier(entry.job)] = nil
      state.running.append(Running(entry: entry))
      watch(&state)
      return entry
    }
  }

  private func end(_ entry: TransactionSchedule.Entry) {
    state.withLock { state in
      state.running.removeAll { $0.entry === entry }
      for entry in state.schedule.end(entry) { state.ready.insert(entry) }
    }
  }

  // MARK: Closing

  /// Ends all, once the engine is closed: those that wait, and those whose blocks still run.
  func close() {
    let (running, others) = state.withLock { state in
      state.isClosed = true
      let others = state.waiting.values.sorted { $0.number < $1.number }
      // One by one, so that no long chain of them is freed at once.
      for entry in others { _ = state.schedule.end(entry) }
      state.ready.removeAll()
      state.waiting = [:]
      return (state.running.map(\.entry), others)
    }
    for entry in running { entry.job.withdraw(DatabaseError.closed) }
    for entry in others { runAtOnce(entry.job) }
  }
}
