import Dendro
import Dispatch
import DendroTestSupport
import Testing

/// What becomes of what waits when another callback queue is set.
@Suite("Another callback queue")
struct CallbackQueueTests {
  let database = Database.inMemory()
  var place: DatabaseReference { database.reference(withPath: "place") }
  private static let name = DispatchSpecificKey<String>()

  private func queue(_ name: String, _ attributes: DispatchQueue.Attributes = []) -> DispatchQueue {
    let queue = DispatchQueue(label: name, attributes: attributes)
    queue.setSpecific(key: Self.name, value: name)
    return queue
  }

  private static var here: String { DispatchQueue.getSpecific(key: name) ?? "none" }

  /// Returns once the queue has come to where it is now.
  private func pass(_ queue: DispatchQueue) async {
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
  }

  @Test(
    "nothing is lost on a queue that never runs, and nothing comes twice should it run after all")
  func stuck() async throws {
    let stuck = queue("stuck")
    stuck.suspend()
    database.callbackQueue = stuck
    let recorder = Recorder(database)
    let place = place
    place.observe(.value) { recorder.note("\(Self.here): value \(shown($0.value))") }
    plainly {
      for number in 0..<5 {
        place.setValue(number) { _, _ in recorder.note("\(Self.here): done \(number)") }
      }
    }
    database.callbackQueue = queue("other")
    // Behind all five: their completions are queued by then.
    try await database.synchronize()
    let lines = await recorder.take()
    let values = lines.filter { $0.contains("value") }
    let numbers: [String] = (0..<5).map { "other: value \($0)" }
    #expect(values == ["other: value null"] + numbers)
    #expect(lines.filter { $0.contains("done") } == (0..<5).map { "other: done \($0)" })
    stuck.resume()
    await pass(stuck)
    try await place.setValue(5)
    #expect(await recorder.take() == ["other: value 5"])
    place.removeAllObservers()
  }

  @Test("a queue that is set and left before it ran takes no part; the one before may come back")
  func setTwice() async throws {
    let queues = ["a", "b", "c"].map { queue($0) }
    for queue in queues { queue.suspend() }
    let recorder = Recorder(database)
    let place = place
    database.callbackQueue = queues[0]
    place.observe(.value) { recorder.note("\(Self.here): \(shown($0.value))") }
    for queue in [queues[1], queues[0], queues[2], queues[0]] { database.callbackQueue = queue }
    plainly { place.setValue(1) }
    for queue in queues { queue.resume() }
    #expect(await recorder.take() == ["a: null", "a: 1"])
    for queue in queues { await pass(queue) }
    #expect(await recorder.take() == [])
    place.removeAllObservers()
  }

  @Test("a queue that a block sets takes over what was taken for the old one, in order")
  func setByBlock() async throws {
    let (first, second) = (queue("first"), queue("second"))
    database.callbackQueue = first
    let recorder = Recorder(database)
    let place = place
    let database = database
    _ = await recorder.take()
    first.suspend()
    place.observe(.value) { snapshot in
      recorder.note("\(Self.here): \(shown(snapshot.value))")
      if snapshot.int == 10 { database.callbackQueue = second }
    }
    plainly {
      for number in 0..<40 { place.setValue(number) }
    }
    first.resume()
    let lines = await recorder.take()
    #expect(
      lines == ["first: null"] + (0..<40).map { "\($0 <= 10 ? "first" : "second"): \($0)" })
    place.removeAllObservers()
  }

  @Test("a block that is running ends where it began, and the new queue waits for it")
  func running() async throws {
    let first = queue("first")
    let second = queue("second")
    database.callbackQueue = first
    let recorder = Recorder(database)
    let place = place
    let entered = DispatchSemaphore(value: 0)
    let gate = DispatchSemaphore(value: 0)
    for name in ["a", "b"] {
      place.observe(.value) { snapshot in
        if snapshot.exists(), name == "a", Self.here == "first" {
          entered.signal()
          gate.wait()
        }
        recorder.note("\(Self.here): \(name) \(shown(snapshot.value))")
      }
    }
    _ = await recorder.take()
    plainly {
      place.setValue(1)
      place.setValue(2)
      entered.wait()
    }
    database.callbackQueue = second
    await pass(second)
    recorder.note("the new queue had its turn")
    gate.signal()
    #expect(
      await recorder.take() == [
        "the new queue had its turn", "first: a 1", "second: b 1", "second: a 2", "second: b 2",
      ])
    place.removeAllObservers()
  }

  @Test("set by a block in the middle of the first events, the others come on the new one")
  func amidFirstEvents() async throws {
    let children = Dictionary(uniqueKeysWithValues: (100..<200).map { ("k\($0)", $0) })
    try await place.setValue(children)
    database.callbackQueue = queue("first")
    let second = queue("second")
    let recorder = Recorder(database)
    let database = database
    place.observe(.childAdded) { snapshot in
      recorder.note("\(Self.here) \(snapshot.key)")
      if snapshot.key == "k149" { database.callbackQueue = second }
    }
    let expected = (100..<200).map { "\($0 < 150 ? "first" : "second") k\($0)" }
    #expect(await recorder.take() == expected)
    place.removeAllObservers()
  }

  @Test("nothing comes after a removal on the new queue, also of what waited for the one before")
  func removal() async throws {
    let stuck = queue("stuck")
    stuck.suspend()
    database.callbackQueue = stuck
    let recorder = Recorder(database)
    let place = place
    let handle = place.observe(.value) { _ in recorder.note("value") }
    plainly { place.setValue(1) }
    let other = queue("other")
    other.suspend()
    other.async {
      place.removeObserver(withHandle: handle)
      recorder.note("removed")
    }
    database.callbackQueue = other
    other.resume()
    #expect(await recorder.take() == ["removed"])
    stuck.resume()
    await pass(stuck)
    #expect(await recorder.take() == [])
  }

  @Test("whatever queues are set meanwhile, one block at a time and all in order")
  func anyTime() async throws {
    let queues = [queue("a"), queue("b"), queue("c", .concurrent)]
    let place = place
    let database = database
    let isInside = Shared(false)
    let violations = Shared<[String]>([])
    let seen = Shared((value: -1, done: -1))
    @Sendable func inside(_ body: () -> Void) {
      let isSecond = isInside.withLock { inside in
        defer { inside = true }
        return inside
      }
      if isSecond { violations.withLock { $0.append("two at once") } }
      body()
      isInside.withLock { $0 = false }
    }
    place.observe(.value) { snapshot in
      inside {
        let number = snapshot.int ?? -1
        let before = seen.withLock { seen in
          defer { seen.value = number }
          return seen.value
        }
        if before > number {
          violations.withLock { $0.append("value \(number) out of order") }
        }
      }
    }
    let count = 3_000
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        plainly {
          for number in 0..<count {
            place.setValue(number) { _, _ in
              inside {
                let now = seen.withLock { seen in
                  defer { seen.done = number }
                  return seen
                }
                if now.done != number - 1 || now.value < number {
                  violations.withLock { $0.append("done \(number) after \(now)") }
                }
              }
            }
          }
        }
      }
      for seed in 0..<2 {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(seed))
          while seen.withLock({ $0.done }) < count - 1 {
            database.callbackQueue = queues[random.below(3)]
            await Task.yield()
          }
        }
      }
    }
    #expect(violations.value.prefix(5) == [])
    place.removeAllObservers()
  }
}
