#if DENDRO_ADDRESS_SANITIZER
  import Foundation
  import Testing

  /// Whether the sanitizer sees what it must: before anything is made of its silence.
  ///
  /// Each case runs in a process of its own, which ends with the code that `tools/test` has the sanitizer
  /// end with if it reported.
  @Suite("What the address sanitizer sees")
  struct AddressSanitizerTests {
    @Test("a write behind the end")
    func overflow() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        let numbers = UnsafeMutablePointer<Int>.allocate(capacity: 4)
        defer { numbers.deallocate() }
        numbers.initialize(repeating: 0, count: 4)
        (numbers + hidden(4)).pointee = 1
      }
    }

    @Test("a read of what was given back")
    func useAfterFree() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        let numbers = UnsafeMutablePointer<Int>.allocate(capacity: 4)
        numbers.initialize(repeating: 0, count: 4)
        numbers.deallocate()
        print(numbers[hidden(2)])
      }
    }

    /// When the process ends, what nothing reaches any more is looked for.
    @Test("two objects that keep each other alive")
    func leak() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        // On a thread of its own: what is left on a stack still reaches them.
        await withCheckedContinuation { continuation in
          Thread.detachNewThread {
            for _ in 0..<10 { Knot.tie() }
            continuation.resume()
          }
        }
      }
    }

    @Test("an object that is held until the process ends")
    func held() async {
      await #expect(processExitsWith: .success) {
        Knot.last = Knot()
      }
    }
  }

  /// The report is wanted: it is not to lie among those that the suite fails for.
  private func expectReport() {
    typealias SetPath = @convention(c) (UnsafePointer<CChar>) -> Void
    if let address = dlsym(nil, "__sanitizer_set_report_path") {
      unsafeBitCast(address, to: SetPath.self)("stderr")
    }
  }

  /// `number`, which the compiler cannot know.
  @inline(never) private func hidden(_ number: Int) -> Int {
    CommandLine.arguments.isEmpty ? 0 : number
  }

  private final class Knot {
    nonisolated(unsafe) static var last: Knot?
    private var other: Knot?

    @inline(never) static func tie() {
      let one = Knot()
      let two = Knot()
      one.other = two
      two.other = one
    }
  }
#endif
