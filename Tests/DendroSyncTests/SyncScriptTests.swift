import Dendro
import DendroProtocol
import DendroTestSupport
import DendroTree
import Foundation
import Testing

/// The scripts of clients that keep in step with a server, as the official SDK has answered them, played by a server at the
/// other end of a socket.
@Suite("synced databases: as recorded from the official SDK, over a socket")
struct SyncScriptTests {
  @Test("each listener gets the same events, and the server the same listens")
  func scripts() async throws {
    let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
    let text = try String(
      contentsOfFile: "/\(folder)/DendroProtocolTests/Fixtures/sync.jsonl", encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.count == 499)
    let different = [151, 446, 490]
    let stride = Scale.stride(5)
    let server = try ScriptedServer()
    var eventCount = 0
    for (index, line) in lines.enumerated()
    where index.isMultiple(of: stride) || different.contains(index + 1) {
      let script = try #require(JSONMembers(Array(line.utf8)[...]))
      var play = Play(server)
      try await play.run(script)
      eventCount += play.eventCount
      let differences = play.differences
      switch index + 1 {
      case 151:
        // The SDK shows nothing where the server has a leaf, since a write below that came before the leaf is accepted.
        #expect(
          !differences.isEmpty && differences[0].hasPrefix("step 51 (ack), L7"), "\(differences)")
      case 446:
        // The SDK takes the last child up to (2.5, "a") by its key alone, since no child has `a/b`, and shows a child before
        // it. What follows is the correction.
        #expect(
          differences.count == 2 && differences[0].hasPrefix("step 24 (push), L4")
            && differences[1].hasPrefix("step 29 (ack), L4"), "\(differences)")
      case 490:
        // What came for a listen that had ended stays in the SDK, although the server then says that nothing is there.
        #expect(
          differences.count == 1 && differences[0].hasPrefix("step 77 (listened), L8"),
          "\(differences)")
      default: #expect(differences.isEmpty, "line \(index + 1): \(differences.prefix(3))")
      }
    }
    if stride == 1 { #expect(eventCount == 18_819) }
    #expect(eventCount > 0)
  }
}

/// One script.
private struct Play {
  private(set) var differences: [String] = []
  private(set) var eventCount = 0
  private let server: ScriptedServer
  private let database: Database
  private let viewer: Viewer
  /// The requests of listens without an answer, the oldest first, and those of writes.
  private var listens: [(place: String, request: Int64)] = []
  private var writes: [Int64] = []

  init(_ server: ScriptedServer) {
    self.server = server
    database = synced(server.port)
    viewer = Viewer(database)
  }

  mutating func run(_ script: JSONMembers) async throws {
    try server.accept()
    _ = try server.settled()
    let steps = try #require(script["steps"].flatMap { JSONMembers.objects($0) })
    for (index, step) in steps.enumerated() {
      try perform(step)
      let sent = try note(server.settled())
      let seen = await viewer.take()
      let expected = try Self.expected(step)
      eventCount += expected.values.reduce(0) { $0 + $1.count }
      let place = "step \(index) (\(step.string("op") ?? ""))"
      for name in Set(seen.keys).union(expected.keys).sorted() where seen[name] != expected[name] {
        differences.append(
          "\(place), \(name): \(seen[name] ?? []) instead of \(expected[name] ?? [])")
      }
      let sends = step["sends"].flatMap { JSONMembers.objects($0) }?.map {
        Self.text($0.string("a") ?? "", $0)
      }
      if sent != sends ?? [] {
        differences.append("\(place): sent \(sent) instead of \(sends ?? [])")
      }
    }
    try await database.close()
    server.cut()
  }

  private mutating func perform(_ step: JSONMembers) throws {
    let path = step.string("path") ?? ""
    let reference = path.isEmpty ? database.reference() : database.reference().child(path)
    switch step.string("op") {
    case "listen":
      viewer.listen(step.string("id") ?? "", try Self.query(reference, step.object("query")))
    case "unlisten": viewer.unlisten(step.string("id") ?? "")
    case "set": reference.setValue(try Self.value(step["data"]))
    case "update":
      let values = try Self.value(step["data"]) as? [String: Any]
      reference.updateChildValues(try #require(values))
    case "push":
      let tag = step.integer("t").map { ",\"t\":\($0)" } ?? ""
      let data = String(decoding: step["d"] ?? Array("null".utf8)[...], as: UTF8.self)
      let path = (step.string("p") ?? "").drop { $0 == "/" }
      try server.push(step.string("a") ?? "", "{\"p\":\"\(path)\",\"d\":\(data)\(tag)}")
    case "listened":
      let place = Self.place(step)
      let index = try #require(listens.firstIndex { $0.place == place })
      try server.answer(
        listens.remove(at: index).request, step.string("status") ?? "", data: "{}")
    case "ack":
      let number = Int(step.integer("write") ?? 0)
      try server.answer(
        writes[number], step.bool("ok") == true ? "ok" : "permission_denied")
    default: Issue.record("an unknown step")
    }
  }

  /// Notes what the client has sent.
  ///
  /// - Returns: its listens and the ends of them.
  private mutating func note(_ messages: [JSONMembers]) throws -> [String] {
    var sent: [String] = []
    for message in messages {
      let request = try #require(message.object("d"))
      let number = try #require(request.integer("r"))
      let body = try #require(request.object("b"))
      switch request.string("a") {
      case "q":
        listens.append((Self.place(body), number))
        sent.append(Self.text("q", body))
      case "n": sent.append(Self.text("n", body))
      case "p", "m": writes.append(number)
      default: break
      }
    }
    return sent
  }

  private static func place(_ body: JSONMembers) -> String {
    (body.string("p") ?? "") + (body.integer("t").map { "#\($0)" } ?? "")
  }

  private static func text(_ action: String, _ body: JSONMembers) -> String {
    let query = action == "n" ? nil : body["q"].map { " " + String(decoding: $0, as: UTF8.self) }
    return "\(action) \(place(body))\(query ?? "")"
  }

  // MARK: Reading scripts

  private static func value(_ text: ArraySlice<UInt8>?) throws -> Any? {
    guard let text else { return nil }
    let value = try JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)
    return value is NSNull ? nil : value
  }

  private static func expected(_ step: JSONMembers) throws -> [String: [Seen]] {
    let types: [String: DataEventType] = [
      "child_added": .childAdded, "child_removed": .childRemoved, "child_changed": .childChanged,
      "child_moved": .childMoved,
    ]
    var events: [String: [Seen]] = [:]
    for event in step["events"].flatMap({ JSONMembers.objects($0) }) ?? [] {
      let node =
        try event["d"].map { try $0.withUnsafeBytes { try JSONParser.parse($0) } } ?? .empty
      let seen: Seen =
        switch event.string("t") {
        case "value": .value(node)
        case "cancel": .cancelled
        case let type:
          .child(
            try #require(types[type ?? ""]), key: event.string("k") ?? "", node,
            previous: event.string("p"))
        }
      events[event.string("l") ?? "", default: []].append(seen)
    }
    return events
  }

  private static func query(
    _ reference: DatabaseReference, _ parameters: JSONMembers?
  ) throws -> DatabaseQuery {
    guard let parameters else { return reference }
    var query: DatabaseQuery = reference
    for name in ["startAt", "startAfter", "endAt", "endBefore", "equalTo"] {
      guard let bound = try value(parameters[name]) as? [Any], let value = bound.first else {
        continue
      }
      let key = bound.count > 1 ? bound[1] as? String : nil
      query =
        switch (name, key) {
        case ("startAt", let key?): query.queryStarting(atValue: value, childKey: key)
        case ("startAt", nil): query.queryStarting(atValue: value)
        case ("startAfter", let key?): query.queryStarting(afterValue: value, childKey: key)
        case ("startAfter", nil): query.queryStarting(afterValue: value)
        case ("endAt", let key?): query.queryEnding(atValue: value, childKey: key)
        case ("endAt", nil): query.queryEnding(atValue: value)
        case ("endBefore", let key?): query.queryEnding(beforeValue: value, childKey: key)
        case ("endBefore", nil): query.queryEnding(beforeValue: value)
        case (_, let key?): query.queryEqual(toValue: value, childKey: key)
        case (_, nil): query.queryEqual(toValue: value)
        }
    }
    query =
      switch parameters.string("orderBy") {
      case "$key": query.queryOrderedByKey()
      case "$value": query.queryOrderedByValue()
      case nil, "$priority": query.queryOrderedByPriority()
      case let child?: query.queryOrdered(byChild: child)
      }
    if let count = parameters.integer("limitToFirst") {
      query = query.queryLimited(toFirst: UInt(count))
    }
    if let count = parameters.integer("limitToLast") {
      query = query.queryLimited(toLast: UInt(count))
    }
    return query
  }
}
