import Dendro
import DendroTree
import Foundation
import Testing

/// A script of listens and writes with the events that the official SDK has answered them with.
struct EventScript {
  private typealias Object = [String: Any]
  private let script: Object

  init(_ line: some StringProtocol) throws {
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
    script = try #require(object as? Object)
  }

  /// Makes the writes in one database, and holds what listeners to another one see against the script.
  ///
  /// - Parameter root: where the script writes.
  func run(_ name: String, writing root: DatabaseReference, reading database: Database) async throws
  {
    _ = try await root.setValue(script["init"])
    let viewer = Viewer(database)
    for (index, step) in try #require(script["steps"] as? [Object]).enumerated() {
      let path = try #require(step["path"] as? String)
      let target = path.isEmpty ? root : root.child(path)
      switch step["op"] as? String {
      case "listen":
        let ref = path.isEmpty ? database.reference() : database.reference().child(path)
        viewer.listen(
          try #require(step["id"] as? String),
          try Self.query(ref, try #require(step["query"] as? Object)))
      case "set": _ = try await target.setValue(step["data"])
      case "update":
        let values = try #require(step["data"] as? Object)
        _ = try await target.updateChildValues(values)
      default: Issue.record("\(name): an unknown step")
      }
      let events = try #require(step["events"] as? [Object])
      let seen = try await viewer.take(events.count)
      let expected = try Self.expected(events)
      #expect(seen == expected, "\(name), step \(index): \(step["op"] ?? "") at \"\(path)\"")
      if seen != expected { return }
    }
  }

  private static func expected(_ events: [Object]) throws -> [String: [Seen]] {
    let types: [String: DataEventType] = [
      "child_added": .childAdded, "child_removed": .childRemoved, "child_changed": .childChanged,
      "child_moved": .childMoved,
    ]
    var expected: [String: [Seen]] = [:]
    for event in events {
      let data = try JSONSerialization.data(
        withJSONObject: event["d"] ?? NSNull(), options: .fragmentsAllowed)
      let node = try node(String(decoding: data, as: UTF8.self))
      let seen: Seen
      if let type = types[event["t"] as? String ?? ""] {
        seen = .child(
          type, key: try #require(event["k"] as? String), node,
          previous: type == .childRemoved ? nil : event["p"] as? String)
      } else {
        seen = .value(node)
      }
      expected[try #require(event["l"] as? String), default: []].append(seen)
    }
    return expected
  }

  /// Bounds before the order and limits after it; what is there with the value null is a bound.
  private static func query(
    _ ref: DatabaseReference, _ parameters: Object
  ) throws -> DatabaseQuery {
    var query: DatabaseQuery = ref
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
      switch try #require(parameters["index"] as? String) {
      case ".priority": query.queryOrderedByPriority()
      case ".key": query.queryOrderedByKey()
      case ".value": query.queryOrderedByValue()
      case let child: query.queryOrdered(byChild: child)
      }
    guard let limit = parameters["limit"] as? Int else { return query }
    return parameters["side"] as? String == "l"
      ? query.queryLimited(toFirst: UInt(limit)) : query.queryLimited(toLast: UInt(limit))
  }
}
