import Dendro
import Dispatch
import Testing

extension EventTests {
  @Test("first events: every child in order, the value, nothing of the others")
  func initial() async throws {
    try await root.setValue(
      [
        "10": 1, "9": 1, "a": [".value": 1, ".priority": 1], "b": 2,
      ] as [String: Any])
    let recorder = Recorder(database)
    recorder.listen("", root)
    #expect(
      await recorder.take() == [
        "added 9=1 after nil", "added 10=1 after 9", "added b=2 after 10",
        "added a={.priority:1,.value:1} after b",
        "value {10:1,9:1,a:{.priority:1,.value:1},b:2}",
      ])
  }

  @Test("a later registration raises no event for earlier ones")
  func laterRegistration() async throws {
    try await root.setValue(1)
    let recorder = Recorder(database)
    recorder.listen("one", root, [.value])
    recorder.listen("two", root, [.value])
    #expect(await recorder.take() == ["one:value 1", "two:value 1"])
  }

  @Test("single events")
  func single() async throws {
    try await root.setValue(["b": 1, "a": 2])
    let recorder = Recorder(database)
    for type in DataEventType.allCases {
      root.observeSingleEvent(
        of: type,
        andPreviousSiblingKeyWith: { snapshot, previous in
          recorder.note(Recorder.line("", type, snapshot, previous))
        })
    }
    #expect(await recorder.take() == ["added a=2 after nil", "value {a:2,b:1}"])
    for value in [1, 2, 3] {
      try await root.child("a").setValue([".value": value, ".priority": value])
    }
    #expect(
      await recorder.take() == [
        "moved a={.priority:1,.value:1} after b", "changed a={.priority:1,.value:1} after b",
      ])
    try await root.setValue(nil)
    #expect(await recorder.take() == ["removed b=1"])
    let empty = root.child("empty")
    async let first = empty.observeSingleEventAndPreviousSiblingKey(of: .childAdded)
    await settle(database)
    try await empty.updateChildValues(["x": 1, "y": 2])
    let (snapshot, previous) = await first
    #expect(["x", "y"].contains(snapshot.key) && (snapshot.key == "y") == (previous == "x"))
  }

  @Test("what a single event's block writes does not call it again")
  func singleWrites() async throws {
    let recorder = Recorder(database)
    let root = root
    root.observeSingleEvent(of: .value) { snapshot in
      recorder.note("value \(shown(snapshot.value))")
      root.setValue(snapshot.int ?? 0 + 1)
    }
    _ = await recorder.take()
    #expect(await recorder.take() == [])
    #expect(try await root.getData().int == 1)
  }

  @Test("removal by handle, of all here, and of none elsewhere")
  func removal() async throws {
    let recorder = Recorder(database)
    let handles = recorder.listen("one", root.child("a"), [.value])
    recorder.listen("two", root.child("a"), [.value])
    recorder.listen("below", root.child("a/b"), [.value])
    recorder.listen("above", root, [.value])
    _ = await recorder.take()
    root.removeObserver(withHandle: handles[0])
    try await root.child("a/b").setValue(1)
    #expect(
      await recorder.take() == [
        "below:value 1", "one:value {b:1}", "two:value {b:1}", "above:value {a:{b:1}}",
      ], "a handle of another location is ignored")
    root.child("a").removeObserver(withHandle: handles[0])
    root.child("a").removeObserver(withHandle: handles[0])
    root.child("a").removeObserver(withHandle: 0)
    try await root.child("a/b").setValue(2)
    #expect(
      await recorder.take() == ["below:value 2", "two:value {b:2}", "above:value {a:{b:2}}"])
    root.child("a").removeAllObservers()
    try await root.child("a/b").setValue(3)
    #expect(await recorder.take() == ["below:value 3", "above:value {a:{b:3}}"])
    root.child("a/b").removeAllObservers()
    root.removeAllObservers()
    try await root.child("a/b").setValue(4)
    #expect(await recorder.take() == [])
  }

  @Test("nothing comes after a removal on the callback queue, also of what was queued")
  func removalOnQueue() async throws {
    let queue = DispatchQueue(label: "callbacks")
    database.callbackQueue = queue
    let recorder = Recorder(database)
    let root = root
    let handle = root.observe(.value) { recorder.note("value \(shown($0.value))") }
    _ = await recorder.take()
    await withCheckedContinuation { continuation in
      queue.async {
        // The event is queued behind this block.
        root.setValue(1)
        root.removeObserver(withHandle: handle)
        recorder.note("removed")
        continuation.resume()
      }
    }
    #expect(await recorder.take() == ["removed"])
  }

  @Test("a listener may remove itself and others, and write, from its block")
  func fromWithin() async throws {
    let recorder = Recorder(database)
    let root = root
    root.child("a").observe(.value) { snapshot in
      recorder.note("a \(shown(snapshot.value))")
      if snapshot.int == 1 {
        root.child("a").removeAllObservers()
        root.child("b").setValue("written")
      }
    }
    root.child("a").observe(.value) { recorder.note("second \(shown($0.value))") }
    root.child("b").observe(.value) { recorder.note("b \(shown($0.value))") }
    _ = await recorder.take()
    try await root.child("a").setValue(1)
    _ = await recorder.take()
    // The block was called by then, and the event of its write comes next.
    _ = await recorder.take()
    try await root.child("a").setValue(2)
    #expect(try await root.child("b").getData().string == "written")
    #expect(await recorder.take() == [])
  }

  /// Uses the database in its deinit.
  private final class LastWords: Sendable {
    let ref: DatabaseReference

    init(_ ref: DatabaseReference) { self.ref = ref }

    deinit {
      ref.setValue(ServerValue.increment(1))
      ref.removeAllObservers()
    }
  }

  @Test(
    "an object that a block captures may use the database in its deinit, however the block is released"
  )
  func lastWords() async throws {
    let count = root.child("count")
    func listen(single: Bool) -> DatabaseHandle {
      let words = LastWords(count)
      if single {
        root.child("x").observeSingleEvent(of: .value) { _ in withExtendedLifetime(words) {} }
        return 0
      }
      return root.child("x").observe(.value) { _ in withExtendedLifetime(words) {} }
    }
    // Before its first event, after it, with all others, by its own event, with the database.
    root.child("x").removeObserver(withHandle: listen(single: false))
    await settle(database)
    let handle = listen(single: false)
    await settle(database)
    root.child("x").removeObserver(withHandle: handle)
    _ = listen(single: false)
    _ = listen(single: false)
    root.child("x").removeAllObservers()
    _ = listen(single: true)
    await settle(database)
    await settle(database)
    #expect(try await count.getData().int == 5)
    _ = listen(single: false)
    try await database.close()
    await settle(database)
  }
}
