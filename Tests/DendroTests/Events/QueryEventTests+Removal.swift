import Dendro
import Foundation
import Testing

extension QueryEventTests {
  // MARK: Removal

  @Test(
    "who is left",
    arguments: [
      ("reference", ""), ("by priority", ""), ("by key", "A C"), ("first 2", "A B"),
      ("first 3", "A B C"), ("child", "A B C"), ("bad", "A B C"),
    ])
  func removal(_ remover: String, _ left: String) async throws {
    let recorder = Recorder(database)
    func query(_ name: String) -> DatabaseQuery {
      switch name {
      case "reference": root
      case "by priority": root.queryOrderedByPriority()
      case "by key": root.queryOrderedByKey()
      case "first 2": root.queryLimited(toFirst: 2)
      case "first 3": root.queryLimited(toFirst: 3)
      case "child": root.child("a")
      default: root.queryLimited(toFirst: 0)
      }
    }
    recorder.listen("A", root, [.value])
    recorder.listen("B", query("by key"), [.value])
    recorder.listen("C", query("first 2"), [.value])
    _ = await recorder.take()
    query(remover).removeAllObservers()
    try await root.setValue(["a": 1])
    #expect(
      await recorder.take() == left.split(separator: " ").map { "\($0):value {a:1}" })
    // The remaining ones continue as before, also once more.
    try await root.setValue(["a": 2])
    #expect(
      await recorder.take() == left.split(separator: " ").map { "\($0):value {a:2}" })
  }

  @Test("a handle is removed by the reference and by an equal query, and ignored by another one")
  func handles() async throws {
    let recorder = Recorder(database)
    let query = { [root] in root.queryOrdered(byChild: "s").queryLimited(toFirst: 1) }
    let one = recorder.listen("one", query(), [.value])[0]
    let two = recorder.listen("two", query(), [.value])[0]
    let plain = recorder.listen("plain", root, [.value])[0]
    _ = await recorder.take()
    root.queryOrdered(byChild: "s").removeObserver(withHandle: one)
    root.child("a").removeObserver(withHandle: one)
    query().removeObserver(withHandle: plain)
    try await root.setValue(["a": 1])
    #expect(
      await recorder.take() == ["one:value {a:1}", "two:value {a:1}", "plain:value {a:1}"])
    query().removeObserver(withHandle: one)
    root.removeObserver(withHandle: two)
    try await root.setValue(["a": 2])
    #expect(await recorder.take() == ["plain:value {a:2}"])
    query().removeObserver(withHandle: one)
  }

  @Test("both listeners of equal queries are removed through one query")
  func equalQueries() async throws {
    let recorder = Recorder(database)
    let query = { [root] in root.queryOrdered(byChild: "s").queryLimited(toFirst: 1) }
    recorder.listen("one", query(), [.value])
    recorder.listen("two", query(), [.value])
    _ = await recorder.take()
    query().removeAllObservers()
    try await root.setValue(["a": 1])
    #expect(await recorder.take() == [])
  }

  @Test("an invalid query calls the cancel block, on the callback queue, and nothing else")
  func refused() async throws {
    let recorder = Recorder(database)
    root.queryLimited(toFirst: 0).observe(
      .value, with: { _ in recorder.note("value") },
      withCancel: { recorder.note(($0 as? DatabaseError)?.name ?? "?") })
    #expect(await recorder.take() == ["InvalidQueryParameter"])
  }
}
