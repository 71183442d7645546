import Dendro
import Dispatch
import Foundation
import Testing

extension EventTests {
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

  @Test("a listener that keeps up gets every write, in commit order")
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
    #expect(violations.value == [])
    #expect(shown(try await root.getData().value) == "{w0:500,w1:500,w2:500,w3:500}")
  }
}
