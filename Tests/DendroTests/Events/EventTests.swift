import Dendro
import Dispatch
import Foundation
import Testing

/// A state, a write, and what a listener at the root is told, in order.
struct Trace: CustomTestStringConvertible, @unchecked Sendable {
  let before: Any?
  let path: String
  let write: Write
  let events: [String]

  enum Write {
    case set(Any?)
    case update([AnyHashable: Any])
    case priority(Any?)
  }

  init(_ before: Any?, _ path: String, _ write: Write, _ events: [String]) {
    self.before = before
    self.path = path
    self.write = write
    self.events = events
  }

  var testDescription: String {
    switch write {
    case .set(let value): "set \(path) \(shown(value)) on \(shown(before))"
    case .update(let values): "update \(path) \(shown(values)) on \(shown(before))"
    case .priority(let priority): "set \(path)/.priority \(shown(priority)) on \(shown(before))"
    }
  }

  func perform(at root: DatabaseReference) async throws {
    let ref = root.child(path)
    switch write {
    case .set(let value): try await ref.setValue(value)
    case .update(let values): try await ref.updateChildValues(values)
    case .priority(let priority): try await ref.setPriority(priority)
    }
  }
}

@Suite("Events")
struct EventTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  nonisolated(unsafe) static let ranked: [String: Any] = [
    "a": [".value": 1, ".priority": 1], "b": [".value": 1, ".priority": 2],
    "c": [".value": 1, ".priority": 3],
  ]

  @Test(
    "plain writes, seen from the root",
    arguments: [
      Trace(
        ["b": 1, "d": 3, "g": 5, "h": 6], "/", .set(["b": 2, "bb": "x", "c": "y", "g": 5]),
        [
          "removed d=3", "removed h=6", #"added bb="x" after b"#, #"added c="y" after bb"#,
          "changed b=2 after nil", #"value {b:2,bb:"x",c:"y",g:5}"#,
        ]),
      Trace(["b": 2], "b", .set(2), []),
      Trace(["b": 1, "c": 2], "/", .set(nil), ["removed b=1", "removed c=2", "value null"]),
      Trace(5, "/", .set(["a": 1]), ["added a=1 after nil", "value {a:1}"]),
      Trace(["a": 1], "/", .set(7), ["removed a=1", "value 7"]),
      Trace(7, "q/r", .set(nil), []),
      Trace(
        ["a": ["b": ["c": 1]]], "a/b/c", .set(nil), ["removed a={b:{c:1}}", "value null"]),
      Trace(
        ["p": ["x": 1, "y": 2], "q": ["z": 3]], "/",
        .update(["p/x": NSNull(), "q/w": 5, "r/s/t": true]),
        [
          "added r={s:{t:true}} after q", "changed p={y:2} after nil",
          "changed q={w:5,z:3} after p", "value {p:{y:2},q:{w:5,z:3},r:{s:{t:true}}}",
        ]),
      Trace(
        ["q": ["w": 5], "r": 1], "/", .update(["q/.priority": 7]),
        [
          "moved q={.priority:7,w:5} after r", "changed q={.priority:7,w:5} after r",
          "value {q:{.priority:7,w:5},r:1}",
        ]),
      Trace(["a": 1], "/", .update([:]), []),
      Trace(
        ranked, "a", .priority(4),
        [
          "moved a={.priority:4,.value:1} after c", "changed a={.priority:4,.value:1} after c",
          "value {a:{.priority:4,.value:1},b:{.priority:2,.value:1},c:{.priority:3,.value:1}}",
        ]),
      Trace(
        ranked, "c", .set("z"),
        [
          #"moved c="z" after nil"#, #"changed c="z" after nil"#,
          #"value {a:{.priority:1,.value:1},b:{.priority:2,.value:1},c:"z"}"#,
        ]),
      Trace(["a": 1], "/", .priority("p"), [#"value {.priority:"p",a:1}"#]),
      Trace(
        ["a": 1], "/", .set(["b": 2, ".priority": 1]),
        ["removed a=1", "added b=2 after nil", "value {.priority:1,b:2}"]),
      Trace(1, "/", .set(1.0), []),
      Trace(1, "/", .set(true), ["value true"]),
      Trace(
        ["a": 1], "a", .priority(1),
        [
          "moved a={.priority:1,.value:1} after nil", "changed a={.priority:1,.value:1} after nil",
          "value {a:{.priority:1,.value:1}}",
        ]),
    ])
  func traces(_ trace: Trace) async throws {
    try await root.setValue(trace.before)
    let recorder = Recorder(database)
    recorder.listen("", root)
    _ = await recorder.take()
    try await trace.perform(at: root)
    #expect(await recorder.take() == trace.events)
  }

  @Test("across locations: descendants first, siblings in plain string order")
  func acrossLocations() async throws {
    try await root.setValue(["u": ["a": ["n": 1], "b": ["n": 2]], "o": 1])
    let recorder = Recorder(database)
    for (name, path) in [("root", "/"), ("u", "u"), ("ua", "u/a"), ("un", "u/a/n"), ("o", "o")] {
      recorder.listen(name, root.child(path))
    }
    _ = await recorder.take()
    try await root.updateChildValues(["u/a/n": 9, "o": 2])
    #expect(
      await recorder.take() == [
        "o:value 2", "un:value 9", "ua:changed n=9 after nil", "ua:value {n:9}",
        "u:changed a={n:9} after nil", "u:value {a:{n:9},b:{n:2}}", "root:changed o=2 after nil",
        "root:changed u={a:{n:9},b:{n:2}} after o", "root:value {o:2,u:{a:{n:9},b:{n:2}}}",
      ])
    try await root.child("u").setValue(nil)
    #expect(
      await recorder.take() == [
        "un:value null", "ua:removed n=9", "ua:value null", "u:removed a={n:9}",
        "u:removed b={n:2}", "u:value null", "root:removed u={a:{n:9},b:{n:2}}",
        "root:value {o:2}",
      ])
  }

  @Test("siblings in plain string order, not in the order of keys")
  func siblings() async throws {
    let recorder = Recorder(database)
    for (name, key) in [("nine", "9"), ("a", "a"), ("ten", "10")] {
      recorder.listen(name, root.child(key), [.value])
    }
    _ = await recorder.take()
    try await root.updateChildValues(["9": 1, "a": 1, "10": 1])
    #expect(await recorder.take() == ["ten:value 1", "nine:value 1", "a:value 1"])
    try await root.setValue(["9": 2, "a": 2, "10": 2])
    #expect(await recorder.take() == ["ten:value 2", "nine:value 2", "a:value 2"])
  }

  @Test("at one location in the order of registration, one change after the other")
  func sameLocation() async throws {
    try await root.setValue(["a": 1, "b": 2, "c": 3])
    let recorder = Recorder(database)
    recorder.listen("first", root, [.value])
    recorder.listen("all", root)
    recorder.listen("again", root, [.childRemoved, .childChanged])
    _ = await recorder.take()
    try await root.setValue(["b": 2, "c": 4])
    #expect(
      await recorder.take() == [
        "all:removed a=1", "again:removed a=1", "all:changed c=4 after b",
        "again:changed c=4 after b", "first:value {b:2,c:4}", "all:value {b:2,c:4}",
      ])
  }

  @Test("listeners above and below what is not there yet")
  func emptyLocations() async throws {
    let recorder = Recorder(database)
    recorder.listen("v", root.child("x"))
    recorder.listen("deep", root.child("x/y"))
    #expect(await recorder.take() == ["v:value null", "deep:value null"])
    try await root.child("x/y").setValue(1)
    #expect(
      await recorder.take() == ["deep:value 1", "v:added y=1 after nil", "v:value {y:1}"])
    try await root.child("x").setValue(["y": 1])
    #expect(await recorder.take() == [])
    try await root.child("x").setValue(["y": ["z": 1]])
    #expect(
      await recorder.take() == [
        "deep:added z=1 after nil", "deep:value {z:1}", "v:changed y={z:1} after nil",
        "v:value {y:{z:1}}",
      ])
    try await root.child("x/y/z").setValue(nil)
    #expect(
      await recorder.take() == [
        "deep:removed z=1", "deep:value null", "v:removed y={z:1}", "v:value null",
      ])
  }

  @Test("a write elsewhere tells nobody")
  func elsewhere() async throws {
    let recorder = Recorder(database)
    recorder.listen("a", root.child("a/b"))
    _ = await recorder.take()
    try await root.child("a/c").setValue(1)
    try await root.child("b").setValue(1)
    try await root.child("a").updateChildValues(["d": 1])
    #expect(await recorder.take() == [])
  }

  // MARK: Registration

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

  @Test("a later registration does not tell earlier ones")
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
    // The block was called by then, and what it wrote is told next.
    _ = await recorder.take()
    try await root.child("a").setValue(2)
    #expect(try await root.child("b").getData().string == "written")
    #expect(await recorder.take() == [])
  }

  /// Uses the database while it goes.
  private final class LastWords: Sendable {
    let ref: DatabaseReference

    init(_ ref: DatabaseReference) { self.ref = ref }

    deinit {
      ref.setValue(ServerValue.increment(1))
      ref.removeAllObservers()
    }
  }

  @Test("what a block holds may use the database when it goes, however the block goes")
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

  // MARK: Order and load

  @Test("completions come after the events of their write, in the order of the writes")
  func completions() async throws {
    let recorder = Recorder(database)
    let root = root
    recorder.listen("", root.child("n"), [.value])
    _ = await recorder.take()
    for number in 1...20 {
      // Equal writes have completions too, in their turn.
      root.child("n").setValue(number / 2 * 2) { error, ref in
        recorder.note("done \(number) \(ref.key!) \(error == nil)")
      }
    }
    root.child("n").setValue(Date()) { error, _ in
      recorder.note("refused \((error as? DatabaseError)?.name ?? "")")
    }
    try await root.child("last").setValue(1)
    let lines = await recorder.take()
    let done = lines.filter { !$0.hasPrefix("value") }
    #expect(done == (1...20).map { "done \($0) n true" } + ["refused InvalidFirebaseData"])
    for number in stride(from: 2, through: 20, by: 2) {
      let event = try #require(lines.firstIndex(of: "value \(number)"))
      let completion = try #require(lines.firstIndex(of: "done \(number) n true"))
      #expect(event < completion)
    }
  }

  @Test("every write is told, in commit order, to a listener that keeps up")
  func everyWrite() async throws {
    let recorder = Recorder(database)
    recorder.listen("", root.child("n"), [.value])
    for number in 0..<200 {
      plainly { root.child("n").setValue(number) }
      if number % 16 == 15 { await settle(database) }
    }
    #expect(await recorder.take() == ["value null"] + (0..<200).map { "value \($0)" })
  }

  @Test("a listener that falls behind gets the difference to the head, not every state")
  func lagging() async throws {
    let gate = DispatchSemaphore(value: 0)
    let recorder = Recorder(database)
    let root = root
    root.observe(.value) { _ in gate.wait() }
    recorder.listen("", root, [.childAdded, .value])
    plainly {
      for number in 0..<10_000 { root.child("k\(number % 100)").setValue(number) }
    }
    gate.signal()
    for _ in 0..<10_000 { gate.signal() }
    let lines = await recorder.take()
    #expect(lines.count < 1_000, "bounded")
    // What came in between may be missing, what is at the end may not.
    #expect(lines.filter { $0.hasPrefix("added") }.count == 100)
    let last = try await root.getData()
    #expect(lines.last == "value \(shown(last.value))")
    root.removeAllObservers()
  }

  @Test("a concurrent queue keeps the order")
  func concurrentQueue() async throws {
    database.callbackQueue = DispatchQueue(label: "many", attributes: .concurrent)
    let recorder = Recorder(database)
    recorder.listen("", root.child("n"), [.value])
    plainly { for number in 0..<50 { root.child("n").setValue(number) } }
    #expect(await recorder.take() == ["value null"] + (0..<50).map { "value \($0)" })
  }

  @Test("callbacks run on the callback queue")
  func queue() async throws {
    let queue = DispatchQueue(label: "mine")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    database.callbackQueue = queue
    #expect(database.callbackQueue === queue)
    let recorder = Recorder(database)
    let root = root
    @Sendable func note(_ what: String) {
      recorder.note("\(what) \(DispatchQueue.getSpecific(key: key) == true)")
    }
    root.observe(.value) { _ in note("event") }
    root.setValue(nil) { _, _ in note("completion") }
    root.getData { _, _ in note("read") }
    root.child("#").observe(.value, with: { _ in }, withCancel: { _ in note("cancel") })
    try await root.setValue(nil)
    #expect(
      await recorder.take().sorted() == [
        "cancel true", "completion true", "event true", "read true",
      ])
  }

  @Test("4 writers, 8 listeners that come and go: states ascend, and the last one is the head")
  func load() async throws {
    let root = root
    let violations = Shared<[String]>([])
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          plainly { for number in 1...500 { root.child("w\(writer)").setValue(number) } }
        }
      }
      for listener in 0..<8 {
        group.addTask {
          for round in 0..<20 {
            let seen = Shared(0)
            let path = round % 2 == 0 ? "w\(listener % 4)" : "/"
            let handle = root.child(path).observe(.value) { snapshot in
              let value = snapshot.int ?? snapshot["w0"].int ?? 0
              let before = seen.withLock { seen in
                defer { seen = value }
                return seen
              }
              if value < before { violations.withLock { $0.append("\(before) then \(value)") } }
            }
            await settle(root.database)
            root.child(path).removeObserver(withHandle: handle)
          }
        }
      }
    }
    #expect(violations.withLock { $0 } == [])
    #expect(shown(try await root.getData().value) == "{w0:500,w1:500,w2:500,w3:500}")
  }
}
