import DendroTree
import Synchronization

/// One transaction in the queue, or an operation of a server that runs as one. Any thread may use it.
final class TransactionJob: Sendable {
  let path: Path
  /// Whether it takes one of the places of those that wait.
  let hasPlace: Bool
  /// Whether the time limit of the options holds for it.
  let hasTimeLimit: Bool
  let started = ContinuousClock.now
  private let state: Mutex<State>

  private struct State {
    var run: (@Sendable (TransactionJob) -> Void)?
    var withdraw: (@Sendable (any Error) -> Void)?
    var start: ContinuousClock.Instant?
    var blockStart: ContinuousClock.Instant?
  }

  /// - Parameters:
  ///   - run: runs it, and tells when its block begins. Called once at most.
  ///   - withdraw: ends it with an error unless its decision may have been admitted, and also while its block runs.
  init(
    at path: Path, hasPlace: Bool, hasTimeLimit: Bool = true,
    run: @escaping @Sendable (TransactionJob) -> Void,
    withdraw: @escaping @Sendable (any Error) -> Void
  ) {
    self.path = path
    self.hasPlace = hasPlace
    self.hasTimeLimit = hasTimeLimit
    state = Mutex(State(run: run, withdraw: withdraw))
  }

  /// Runs it, unless it was discarded.
  func run() {
    let run = state.withLock { $0.run }
    run?(self)
    discard()
  }

  /// Ends it with an error unless its decision may have been admitted.
  func withdraw(_ error: any Error) {
    let withdraw = state.withLock { $0.withdraw }
    withdraw?(error)
  }

  /// Whether it has run, or never will.
  var isDiscarded: Bool { state.withLock { $0.run == nil } }

  /// Frees what it holds: it has run, or never will.
  func discard() {
    // Freed without the lock: it may be the application's.
    let old = state.withLock { state in
      defer { (state.run, state.withdraw) = (nil, nil) }
      return (state.run, state.withdraw)
    }
    withExtendedLifetime(old) {}
  }

  /// Notes that it runs, and no longer waits for the disk.
  func begins() {
    let now = ContinuousClock.now
    state.withLock { $0.start = now }
  }

  /// Calls its block, or what decides in place of one.
  func runBlock<R>(_ block: () -> R) -> R {
    let now = ContinuousClock.now
    state.withLock { $0.blockStart = now }
    defer { state.withLock { $0.blockStart = nil } }
    return block()
  }

  /// When it began to run; nil while it waits.
  var start: ContinuousClock.Instant? { state.withLock { $0.start } }

  /// When this run of its block began; nil while none runs.
  var blockStart: ContinuousClock.Instant? { state.withLock { $0.blockStart } }
}
