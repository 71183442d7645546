import Foundation
import Synchronization

/// Ctrl-C and SIGTERM: what runs ends in order, tells what it found, and cleans up.
enum Interruption {
  private static let signalNumber = Atomic<Int32>(0)

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
    // It may be told a moment earlier than we are.
    for _ in 0..<200 where !isRequested { usleep(1000) }
    return isRequested
  }

  /// As a shell reports a process that the signal ended; nil where there was none.
  static var exitCode: Int32? {
    let number = signalNumber.load(ordering: .relaxed)
    return number == 0 ? nil : 128 + number
  }
}
