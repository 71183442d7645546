import Dendro
import Foundation
import Testing

/// Scripts of listens and writes with the events that the official JavaScript SDK answered them with.
/// One a line in Fixtures/events.jsonl: random trees, paths, queries, several listeners at several depths.
@Suite("Events as recorded from the official SDK")
struct EventVectorTests {
  private typealias Object = [String: Any]

  @Test("every script: the same events in the same order over all listeners")
  func scripts() async throws {
    let file = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
    let text = try String(contentsOfFile: "/\(file)/Fixtures/events.jsonl", encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.count == 400)
    var eventCount = 0
    for (number, line) in lines.enumerated() {
      let script = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? Object)
      guard let events = try await run(script, "line \(number + 1)") else { return }
      eventCount += events
    }
    #expect(eventCount == 8_391)
  }

  /// - Returns: how many events came; nil if they were not those of the script.
  private func run(_ script: Object, _ name: String) async throws -> Int? {
    let database = Database.inMemory()
    let root = database.reference()
    try await root.setValue(script["init"])
    let recorder = Recorder(database)
    var eventCount = 0
    for (index, step) in try #require(script["steps"] as? [Object]).enumerated() {
      let path = try #require(step["path"] as? String)
      let ref = path.isEmpty ? root : root.child(path)
      switch step["op"] as? String {
      case "listen":
        let query = try Self.query(ref, try #require(step["query"] as? Object))
        recorder.listen(try #require(step["id"] as? String), query)
      case "set": try await ref.setValue(step["data"])
      case "update": try await ref.updateChildValues(try #require(step["data"] as? Object))
      default: Issue.record("\(name): unknown step \(step)")
      }
      let expected = try #require(step["events"] as? [Object]).map(Self.line)
      let received = await recorder.take()
      #expect(received == expected, "\(name), step \(index): \(step["op"] ?? "") at \"\(path)\"")
      if received != expected { return nil }
      eventCount += received.count
    }
    try await database.close()
    return eventCount
  }

  /// As `Recorder` writes it down.
  private static func line(_ event: Object) -> String {
    let listener = event["l"] as? String ?? "?"
    let data = shown(event["d"])
    let key = event["k"] as? String ?? "?"
    let previous = event["p"] as? String ?? "nil"
    switch event["t"] as? String {
    case "value": return "\(listener):value \(data)"
    case "child_removed": return "\(listener):removed \(key)=\(data)"
    case "child_added": return "\(listener):added \(key)=\(data) after \(previous)"
    case "child_changed": return "\(listener):changed \(key)=\(data) after \(previous)"
    case "child_moved": return "\(listener):moved \(key)=\(data) after \(previous)"
    default: return "?"
    }
  }

  /// Bounds before the order and limits after it; what is there with the value null is a bound.
  private static func query(_ ref: DatabaseReference, _ parameters: Object) throws -> DatabaseQuery
  {
    var query: DatabaseQuery = ref
    let index = try #require(parameters["index"] as? String)
    if let value = parameters["start"] {
      let isExclusive = parameters["startEx"] as? Bool == true
      query =
        switch (parameters["startKey"] as? String, isExclusive) {
        case (let key?, true): query.queryStarting(afterValue: value, childKey: key)
        case (let key?, false): query.queryStarting(atValue: value, childKey: key)
        case (nil, true): query.queryStarting(afterValue: value)
        case (nil, false): query.queryStarting(atValue: value)
        }
    }
    if let value = parameters["end"] {
      let isExclusive = parameters["endEx"] as? Bool == true
      query =
        switch (parameters["endKey"] as? String, isExclusive) {
        case (let key?, true): query.queryEnding(beforeValue: value, childKey: key)
        case (let key?, false): query.queryEnding(atValue: value, childKey: key)
        case (nil, true): query.queryEnding(beforeValue: value)
        case (nil, false): query.queryEnding(atValue: value)
        }
    }
    query =
      switch index {
      case ".priority": query.queryOrderedByPriority()
      case ".key": query.queryOrderedByKey()
      case ".value": query.queryOrderedByValue()
      default: query.queryOrdered(byChild: index)
      }
    if let limit = parameters["limit"] as? Int {
      query =
        parameters["side"] as? String == "l"
        ? query.queryLimited(toFirst: UInt(limit)) : query.queryLimited(toLast: UInt(limit))
    }
    return query
  }
}
