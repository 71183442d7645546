import Dendro
import DendroProtocol
import DendroServer
import DendroTestSupport
import DendroTree
import Foundation
import Testing

/// The event scripts that the official JavaScript SDK has answered, with the writer and the listeners on two
/// connections.
@Suite("serving: events as recorded from the official SDK")
struct WireVectorTests {
  @Test("every script: each listener gets the same events over the wire")
  func scripts() async throws {
    let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
    let text = try String(
      contentsOfFile: "/\(folder)/DendroTests/Fixtures/events.jsonl", encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.count == 400)
    let stride = Scale.stride(7)
    try await serving { served in
      var eventCount = 0
      for (number, line) in lines.enumerated() where number.isMultiple(of: stride) {
        let script = try #require(JSONMembers(Array(line.utf8)[...]))
        eventCount += try run(script, "line \(number + 1)", served)
      }
      if stride == 1 { #expect(eventCount == 8_391) }
      #expect(eventCount > 0)
    }
  }

  /// - Returns: how many events came.
  private func run(_ script: JSONMembers, _ name: String, _ served: Served) throws -> Int {
    let writer = try WebSocketClient(served)
    try write(writer, "p", "", script["init"] ?? Array("null".utf8)[...])
    let client = try ViewingClient(served)
    var eventCount = 0
    let steps = try #require(script["steps"].flatMap { JSONMembers.objects($0) })
    for (index, step) in steps.enumerated() {
      let path = try #require(step.string("path"))
      switch step.string("op") {
      case "listen":
        try client.listen(
          #require(step.string("id")), at: Path(parsing: path),
          Self.query(#require(step.object("query"))))
      case "set": try write(writer, "p", path, #require(step["data"]))
      case "update": try write(writer, "m", path, #require(step["data"]))
      default: Issue.record("\(name): an unknown step")
      }
      let expected = try Self.expected(#require(step["events"].flatMap { JSONMembers.objects($0) }))
      let seen = try client.take()
      let place = "\(name), step \(index): \(step.string("op") ?? "") at \"\(path)\""
      #expect(seen == expected, "\(place)")
      eventCount += seen.values.reduce(0) { $0 + $1.count }
      // What the client has is what the server has: nothing is sent again.
      if index == steps.count / 2 {
        let pushes = try client.reconnect()
        #expect(pushes == [], "\(place)")
      }
    }
    return eventCount
  }

  private func write(
    _ writer: WebSocketClient, _ action: String, _ path: String, _ data: ArraySlice<UInt8>
  ) throws {
    let data = String(decoding: data, as: UTF8.self)
    let answer = try writer(action, "{\"p\":\"/\(path)\",\"d\":\(data)}")
    #expect(answer == ["{\"s\":\"ok\",\"d\":\"\"}"])
  }

  private static func expected(_ events: [JSONMembers]) throws -> [String: [ViewingClient.Seen]] {
    let types: [String: DataEventType] = [
      "value": .value, "child_added": .childAdded, "child_removed": .childRemoved,
      "child_changed": .childChanged, "child_moved": .childMoved,
    ]
    var expected: [String: [ViewingClient.Seen]] = [:]
    for event in events {
      let type = try #require(event.string("t").flatMap { types[$0] })
      expected[try #require(event.string("l")), default: []].append(
        ViewingClient.Seen(
          type: type, key: event.string("k"),
          node: try ViewingClient.node(#require(event["d"])), previousKey: event.string("p")))
    }
    return expected
  }

  /// The query object that the official client sends for the query of a script.
  private static func query(_ script: JSONMembers) throws -> String {
    let index = try #require(script.string("index"))
    var members: [String] = []
    func add(_ short: String, _ bound: String, keylessName: String) {
      guard let value = script[bound] else { return }
      let isExclusive = script.bool(bound + "Ex") == true
      members.append("\"\(short)p\":\(String(decoding: value, as: UTF8.self))")
      if let key = script.string(bound + "Key") {
        members.append("\"\(short)n\":\"\(key)\"")
      } else if isExclusive, index != ".key" {
        members.append("\"\(short)n\":\"\(keylessName)\"")
      }
      members.append("\"\(short)in\":\(!isExclusive)")
    }
    add("s", "start", keylessName: "[MAX_NAME]")
    add("e", "end", keylessName: "[MIN_NAME]")
    if let limit = script.integer("limit") {
      members += ["\"l\":\(limit)", "\"vf\":\"\(script.string("side") ?? "")\""]
    }
    if index != ".priority" { members.append("\"i\":\"\(index)\"") }
    return "{\(members.joined(separator: ","))}"
  }
}
