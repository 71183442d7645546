import DendroTestSupport
import Testing

@testable import DendroEngine

@Suite("Mutex of the admission")
struct BargingMutexTests {
  /// Threads share it by reference.
  private final class Guarded: Sendable {
    let counts = BargingMutex([0, 0])
  }

  @Test("one thread at a time has the value")
  func exclusion() async {
    let guarded = Guarded()
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          await onThread {
            for _ in 0..<20_000 {
              guarded.counts.withLock { counts in
                // Not one step: two threads at once would lose a count, or read two that differ.
                let first = counts[0]
                counts[0] = first + 1
                if counts[1] == first { counts[1] = first + 1 }
              }
            }
          }
        }
      }
    }
    #expect(guarded.counts.withLock { $0 } == [160_000, 160_000])
  }

  @Test("the value is freed with the mutex, once")
  func lifetime() {
    final class Witness: Sendable {}
    weak var witness: Witness?
    do {
      let first = Witness()
      witness = first
      let mutex = BargingMutex([first])
      #expect(mutex.withLock { $0.count } == 1)
    }
    #expect(witness == nil)
  }

  @Test("what a body returns is passed on, and its changes stay")
  func result() {
    let mutex = BargingMutex("a")
    let length = mutex.withLock { text in
      text += "b"
      return text.count
    }
    #expect(length == 2 && mutex.withLock { $0 } == "ab")
  }
}
