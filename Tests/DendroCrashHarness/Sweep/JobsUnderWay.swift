import DendroPlatform
import Synchronization

/// Which jobs are run at this moment: where one of them ends the process by a trap, they are said on
/// standard error, each as the command that shows it again.
enum JobsUnderWay {
  /// One for each job; of jobs beyond them nothing is said.
  private static let slotCount = 32
  private static let slotByteCount = 512
  private static let endingSignals = [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT]

  /// Slot after slot a line, or zeros; and what was done on the signals before. Memory that a signal
  /// handler may read: it is never moved or freed.
  private struct Memory: @unchecked Sendable {
    // Unchecked: a slot is written by the job that has claimed it, and read where nothing else can be done any
    // more.
    let slots: UnsafeMutablePointer<UInt8>
    let previous: UnsafeMutablePointer<sigaction>
  }

  private static let memory: Memory = {
    let slots = UnsafeMutablePointer<UInt8>.allocate(capacity: slotCount * slotByteCount)
    slots.initialize(repeating: 0, count: slotCount * slotByteCount)
    let previous = UnsafeMutablePointer<sigaction>.allocate(capacity: endingSignals.count)
    previous.initialize(repeating: sigaction(), count: endingSignals.count)
    return Memory(slots: slots, previous: previous)
  }()

  private static let isListening = Atomic<Bool>(false)
  /// A bit for each slot that is claimed.
  private static let claimed = Mutex<UInt32>(0)

  /// Runs `body`, a job.
  static func run<R>(_ place: Reproduction, _ body: (Reproduction) -> R) -> R {
    listen()
    guard let number = claim() else { return body(place) }
    let slot = memory.slots + number * slotByteCount
    var text = "  again: \(place)\n"
    text.withUTF8 { bytes in
      for index in 0..<slotByteCount { slot[index] = index < bytes.count ? bytes[index] : 0 }
    }
    defer {
      slot[0] = 0
      claimed.withLock { $0 &= ~(1 << UInt32(number)) }
    }
    return body(place)
  }

  private static func claim() -> Int? {
    claimed.withLock { bits in
      let number = (~bits).trailingZeroBitCount
      guard number < slotCount else { return nil }
      bits |= 1 << UInt32(number)
      return number
    }
  }

  private static func listen() {
    guard !isListening.exchange(true, ordering: .acquiringAndReleasing) else { return }
    _ = memory
    for (index, number) in endingSignals.enumerated() {
      var action = sigaction()
      #if canImport(Darwin)
        action.__sigaction_u.__sa_handler = { JobsUnderWay.report($0) }
      #else
        action.__sigaction_handler.sa_handler = { JobsUnderWay.report($0) }
      #endif
      sigaction(number, &action, memory.previous + index)
    }
  }

  /// Runs in the signal's handler, with only the calls that are allowed there. Then it raises the signal again
  /// with the default action.
  private static func report(_ signal: Int32) {
    let lead: StaticString = "the process ends while it runs one of these:\n"
    _ = write(2, lead.utf8Start, lead.utf8CodeUnitCount)
    for slot in 0..<slotCount {
      let start = memory.slots + slot * slotByteCount
      var count = 0
      while count < slotByteCount, start[count] != 0 { count += 1 }
      _ = write(2, start, count)
    }
    for index in 0..<endingSignals.count where endingSignals[index] == signal {
      sigaction(signal, memory.previous + index, nil)
    }
    if signal == SIGABRT { raise(signal) }
  }
}
