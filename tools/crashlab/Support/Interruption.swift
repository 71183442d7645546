import Foundation
import Synchronization

/// Handles Ctrl-C and SIGTERM: the running command ends in order, reports its findings, and cleans up.
enum Interruption {
  private static let signalNumber = Atomic<Int32>(0)

  /// Takes off the block of the signals that a process may inherit.
  static func unblock() {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, number) }
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  /// From now on the signals only leave a note; a second one ends the process at once.
  static func listen() {
    // The variable is made before a handler may need it.
    _ = signalNumber.load(ordering: .relaxed)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      signal(number) { number in
        if Interruption.signalNumber.exchange(number, ordering: .relaxed) != 0 {
          _exit(128 + number)
        }
      }
    }
  }

  static var isRequested: Bool { signalNumber.load(ordering: .relaxed) != 0 }

  /// Whether a child's end is the same signal, which came to it before it had a group of its own.
  static func explains(_ end: ChildProcess.End) -> Bool {
    guard [SIGINT, SIGTERM, SIGHUP].contains(where: { end == .signal($0) }) else { return false }
    // The child may get the signal a moment earlier than this process.
    for _ in 0..<200 where !isRequested { usleep(1000) }
    return isRequested
  }

  /// As a shell reports a process that the signal ended; nil if there was none.
  static var exitCode: Int32? {
    let number = signalNumber.load(ordering: .relaxed)
    return number == 0 ? nil : 128 + number
  }
}
