import DendroPlatform
import Synchronization

/// Ctrl-C and SIGTERM, for the verbs that end in order: they check for a signal between two steps.
enum Interruption {
  private static let signalNumber = Atomic<Int32>(0)

  /// Takes off the block that a process may inherit, as from one of Dispatch's threads.
  static func unblock() {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM, SIGPIPE, SIGALRM] { sigaddset(&signals, number) }
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  /// From now on a first signal is only remembered; a second one ends the process at once.
  static func listen() {
    // The variable is made before a handler may need it.
    _ = signalNumber.load(ordering: .relaxed)
    for number in [SIGINT, SIGTERM] {
      handle(number) { number in
        if Interruption.signalNumber.exchange(number, ordering: .relaxed) != 0 {
          _exit(128 + number)
        }
      }
    }
  }

  /// Calls `handler` for a signal, which ends a wait for input: without SA_RESTART.
  static func handle(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
    var action = sigaction()
    #if canImport(Darwin)
      action.__sigaction_u.__sa_handler = handler
    #elseif canImport(Musl)
      action.__sa_handler.sa_handler = handler
    #else
      action.__sigaction_handler.sa_handler = handler
    #endif
    sigaction(number, &action, nil)
  }

  /// Notes a signal that comes during `body`, whose waits for input it ends.
  ///
  /// - Throws: `Ended` behind `body` if it has come.
  static func noting<R>(_ number: Int32, _ body: () throws -> R) throws -> R {
    _ = signalNumber.load(ordering: .relaxed)
    var before = sigaction()
    sigaction(number, nil, &before)
    handle(number) { Interruption.signalNumber.store($0, ordering: .relaxed) }
    defer { sigaction(number, &before, nil) }
    let result = try body()
    if isRequested { throw Ended() }
    return result
  }

  /// Waits until standard input can be read.
  ///
  /// - Returns: false if a signal has come, also if that was before the call.
  static func waitForInput() -> Bool {
    while !isRequested {
      // Another thread may get the signal, or this one just before it waits: that is seen a moment later.
      var input = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
      let count = poll(&input, 1, 100)
      if count > 0 || count < 0 && errno != EINTR { return true }
    }
    return false
  }

  /// Forgets a signal: the next one ends the process at once again.
  static func reset() {
    signalNumber.store(0, ordering: .relaxed)
    signal(SIGINT, SIG_DFL)
    signal(SIGTERM, SIG_DFL)
  }

  static var isRequested: Bool { signalNumber.load(ordering: .relaxed) != 0 }

  /// 130 for Ctrl-C, 143 for SIGTERM, as a shell reports processes that those ended.
  static var exitStatus: Int32 { 128 + signalNumber.load(ordering: .relaxed) }

  /// Thrown by a verb that the signal ends.
  struct Ended: Error, CustomStringConvertible {
    var description: String { "interrupted" }
  }

  /// Waits; a signal ends the wait.
  static func sleep(milliseconds: Int) {
    var time = timespec(
      tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
    guard !isRequested else { return }
    nanosleep(&time, nil)
  }
}
