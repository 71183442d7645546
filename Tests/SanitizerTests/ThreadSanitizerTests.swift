#if DENDRO_THREAD_SANITIZER
  import Dispatch
  import Foundation
  import Synchronization
  import Testing

  /// Whether the sanitizer sees what it must and nothing else: before anything is made of its silence.
  ///
  /// Each case runs in a process of its own, which ends with the sanitizer's code if it reported.
  @Suite("What the thread sanitizer sees")
  struct ThreadSanitizerTests {
    /// Runs each on a thread of its own, all of them there before the first begins, and waits for their
    /// end. How they meet orders nothing for the sanitizer.
    private static func run(_ bodies: [@Sendable () -> Void]) {
      let group = DispatchGroup()
      let arrived = Arrivals(bodies.count)
      for body in bodies {
        group.enter()
        Thread.detachNewThread {
          arrived.meet()
          body()
          group.leave()
        }
      }
      group.wait()
    }

    // MARK: Races

    @Test("a property that two threads change")
    func unguarded() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        let cell = Cell()
        Self.run([{ cell.count() }, { cell.count() }])
      }
    }

    @Test("a property under two mutexes")
    func twoMutexes() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        let cell = Cell()
        let one = Guarded(0)
        let other = Guarded(0)
        Self.run([
          { one.mutex.withLock { _ in cell.count() } },
          { other.mutex.withLock { _ in cell.count() } },
        ])
      }
    }

    @Test("a property behind a relaxed flag")
    func relaxed() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        let cell = Cell()
        let flag = Flag()
        Self.run([
          {
            cell.count()
            flag.isSet.store(true, ordering: .relaxed)
          },
          {
            while !flag.isSet.load(ordering: .relaxed) {}
            cell.count()
          },
        ])
      }
    }

    @Test("a property that blocks of a concurrent queue change")
    func concurrentQueue() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        let cell = Cell()
        let arrived = Arrivals(2)
        let ended = DispatchGroup()
        let queue = DispatchQueue(label: "both at once", attributes: .concurrent)
        for _ in 0..<2 {
          queue.async(group: ended) {
            arrived.meet()
            cell.count()
          }
        }
        ended.wait()
      }
    }

    @Test("a property that a task and a thread change")
    func task() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        let cell = Cell()
        let arrived = Arrivals(2)
        Thread.detachNewThread {
          arrived.meet()
          cell.count()
          arrived.meet()
        }
        await Task.detached {
          arrived.meet()
          cell.count()
          arrived.meet()
        }.value
      }
    }

    @Test("an object that is shared, written without being asked for")
    func sharedObject() async {
      await #expect(processExitsWith: .exitCode(66)) {
        expectReport()
        let cell = Cell()
        let read = Flag()
        Self.run([
          {
            if cell.value < 0 { print(cell.value) }
            read.isSet.store(true, ordering: .relaxed)
          },
          {
            while !read.isSet.load(ordering: .relaxed) {}
            cell.count()
          },
        ])
      }
    }

    // MARK: What is guarded

    @Test("a mutex that threads wait for")
    func mutex() async {
      await #expect(processExitsWith: .success) {
        let cell = Cell()
        let guarded = Guarded([0, 0, 0])
        let count: @Sendable () -> Void = {
          for number in 0..<20_000 {
            guarded.mutex.withLock {
              $0[number % 3] += 1
              cell.count()
            }
            _ = guarded.mutex.withLockIfAvailable { $0[0] += cell.value }
          }
        }
        Self.run([count, count, count, count])
      }
    }

    @Test("a flag that is released and acquired")
    func flag() async {
      await #expect(processExitsWith: .success) {
        let cell = Cell()
        let flag = Flag()
        Self.run([
          {
            cell.count()
            flag.isSet.store(true, ordering: .releasing)
          },
          {
            while !flag.isSet.load(ordering: .acquiring) {}
            cell.count()
          },
        ])
      }
    }

    @Test("serial queues, groups and semaphores")
    func dispatch() async {
      await #expect(processExitsWith: .success) {
        let cell = Cell()
        let queue = DispatchQueue(label: "one after the other")
        let turn = DispatchSemaphore(value: 1)
        let other = Cell()
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
          for _ in 0..<500 {
            queue.async { cell.count() }
            queue.sync { cell.count() }
            turn.wait()
            other.count()
            turn.signal()
          }
        }
        queue.sync { cell.count() }
        other.count()
      }
    }

    @Test("tasks and continuations, resumed before and after they are waited for")
    func continuations() async {
      await #expect(processExitsWith: .success) {
        let cell = Cell()
        for number in 0..<5_000 {
          cell.count()
          await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
              cell.count()
              continuation.resume()
            }
            // Now and then it comes first.
            for _ in 0..<number % 100 { cell.pass() }
          }
          cell.count()
          await Task.detached { cell.count() }.value
        }
      }
    }

    @Test("what is written by its last owner after others read it")
    func copyOnWrite() async {
      await #expect(processExitsWith: .success) {
        let values = Guarded(Array(repeating: 1, count: 100))
        let object = Guarded(Shared())
        let read: @Sendable () -> Void = {
          for _ in 0..<5_000 {
            let copy = values.mutex.withLock { $0 }
            let shared = object.mutex.withLock { $0 }
            withExtendedLifetime(shared) {
              if copy.reduce(0, +) + shared.value < 0 { print(copy) }
            }
          }
        }
        let write: @Sendable () -> Void = {
          for number in 0..<5_000 {
            values.mutex.withLock { $0[number % 100] += 1 }
            object.mutex.withLock {
              if isKnownUniquelyReferenced(&$0) { $0.value += 1 } else { $0 = Shared() }
            }
          }
        }
        Self.run([read, read, write])
      }
    }

    /// In an array the library releases them, whose calls of itself are not ours.
    @Test("what two others read through objects that both release at once, alone and in arrays")
    func releasedAtOnce() async {
      await #expect(processExitsWith: .success) {
        let rounds = 2_000
        let slot = Guarded<Row?>(nil)
        let arrived = Arrivals(3)
        let read: @Sendable () -> Void = {
          for number in 0..<rounds {
            arrived.meet()
            let row = slot.mutex.withLock { $0 }
            let rows = number % 2 == 0 ? [] : many(row)
            arrived.meet()
            arrived.meet()
            if sum(rows) + (row?.object.value ?? 0) < 0 { print(rows) }
          }
        }
        let write: @Sendable () -> Void = {
          for _ in 0..<rounds {
            var object = Shared()
            slot.mutex.withLock { $0 = Row(object) }
            arrived.meet()
            arrived.meet()
            slot.mutex.withLock { $0 = nil }
            arrived.meet()
            while !isKnownUniquelyReferenced(&object) { sched_yield() }
            object.value += 1
          }
        }
        Self.run([read, read, write])
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

  /// Guarded by nothing.
  private final class Cell: @unchecked Sendable {
    private(set) var value = 0

    @inline(never) func count() { value += 1 }
    /// Takes a moment and touches nothing.
    @inline(never) func pass() {}
  }

  /// Written only through the single reference to it.
  private final class Shared: @unchecked Sendable {
    var value = 0
  }

  private final class Row: Sendable {
    let object: Shared
    init(_ object: Shared) { self.object = object }
  }

  @inline(never) private func many(_ row: Row?) -> [Row] {
    row.map { Array(repeating: $0, count: 3) } ?? []
  }

  @inline(never) private func sum(_ rows: [Row]) -> Int { rows.reduce(0) { $0 + $1.object.value } }

  private final class Guarded<Value: Sendable>: Sendable {
    let mutex: Mutex<Value>
    init(_ value: Value) { mutex = Mutex(value) }
  }

  private final class Flag: Sendable {
    let isSet = Atomic<Bool>(false)
  }

  /// If several threads wait for one another, again and again, without being ordered by it.
  private final class Arrivals: Sendable {
    private let count = Atomic<Int>(0)
    private let size: Int

    init(_ size: Int) { self.size = size }

    func meet() {
      let (arrival, _) = count.add(1, ordering: .relaxed)
      let goal = (arrival / size + 1) * size
      while count.load(ordering: .relaxed) < goal { sched_yield() }
    }
  }
#endif
