import DendroProtocol
import DendroTree

/// One script of a client that keeps in step with a server, as the official JavaScript SDK has answered it: each step is
/// something that happens, with what is sent to the server then, and the events of each listener.
struct SyncScript {
  /// What differs from the script.
  private(set) var differences: [String] = []
  private(set) var eventCount = 0
  private var tree = SyncedTree()
  private var listeners: [(id: String, target: SyncedTree.Target)] = []
  /// Listens without an answer, the oldest first.
  private var unanswered: [(place: String, number: Int, target: SyncedTree.Target)] = []
  private var lastWrite = -1
  /// Whether a listen whose hash was right is taken at its word, as the official SDK does not.
  private let takesHashes: Bool
  /// The numbers of listens without an answer of which the server has said what is there.
  private var toldOtherwise: Set<Int> = []

  struct Unreadable: Error {
    let text: String
  }

  /// - Parameters:
  ///   - line: the script as JSON.
  ///   - takesHashes: whether a listen whose hash was right is taken at its word, as the official SDK does not.
  init(running line: some StringProtocol, takesHashes: Bool = false) throws {
    self.takesHashes = takesHashes
    guard let script = JSONMembers(Array(line.utf8)[...]),
      let steps = script["steps"].flatMap({ JSONMembers.objects($0) })
    else { throw Unreadable(text: "no script") }
    for (index, step) in steps.enumerated() {
      let (events, sent) = try perform(step)
      let place = "step \(index) (\(step.string("op") ?? ""))"
      let expected = try Self.expectedEvents(step)
      eventCount += expected.values.reduce(0) { $0 + $1.count }
      for id in Set(expected.keys).union(events.keys).sorted()
      where events[id] ?? [] != expected[id] ?? [] {
        differences.append(
          "\(place), \(id): \(events[id] ?? []) instead of \(expected[id] ?? [])")
      }
      let sends = step["sends"].flatMap { JSONMembers.objects($0) }?.map(Self.text) ?? []
      if sent != sends { differences.append("\(place): sent \(sent) instead of \(sends)") }
    }
  }

  private typealias Events = [String: [SyncEvent]]

  // MARK: Steps

  private mutating func perform(_ step: JSONMembers) throws -> (Events, [String]) {
    switch step.string("op") {
    case "listen": return try listen(step)
    case "unlisten":
      // One whose listen was refused has ended already.
      guard let index = listeners.firstIndex(where: { $0.id == step.string("id") }) else {
        return ([:], [])
      }
      let target = listeners.remove(at: index).target
      if listeners.contains(where: { $0.target == target }) { return ([:], []) }
      return ([:], sent(tree.end(target)))
    case "set":
      lastWrite += 1
      let write = PendingWrites.Write(
        setting: DataPlace(try Self.path(step, "path")), try Self.node(step["data"]))
      return (events(tree.write(write, number: lastWrite)), [])
    case "update":
      lastWrite += 1
      let write = PendingWrites.Write(
        updating: try Self.path(step, "path"), try Self.entries(step, "data"))
      return (events(tree.write(write, number: lastWrite)), [])
    case "push":
      let path = try Self.path(step, "p")
      let tag = step.integer("t").map(Int.init)
      if let next = unanswered.first, step.string("a") == "d",
        Self.place("\(path)", tag) == next.place
      {
        toldOtherwise.insert(next.number)
      }
      return (
        events(
          step.string("a") == "m"
            ? tree.merge(try Self.entries(step, "d"), at: path, tag: tag)
            : tree.put(try Self.node(step["d"]), at: DataPlace(path), tag: tag)), []
      )
    case "listened": return try answerListen(step)
    case "ack":
      let number = Int(step.integer("write") ?? step["write"].map { _ in 0 } ?? -1)
      return (events(tree.answered(number: number, isAccepted: step.bool("ok") ?? false)), [])
    default: throw Unreadable(text: "an unknown step")
    }
  }

  private mutating func listen(_ step: JSONMembers) throws -> (Events, [String]) {
    let id = step.string("id") ?? ""
    let target = SyncedTree.Target(
      try Self.path(step, "path"), try Self.parameters(step.object("query")))
    let requests = tree.begin(target)
    listeners.append((id, target))
    guard let visible = tree.visible(target) else { throw Unreadable(text: "no listen") }
    let events = SyncEvent.first(of: visible, target.parameters)
    return (events.isEmpty ? [:] : [id: events], sent(requests))
  }

  private mutating func answerListen(_ step: JSONMembers) throws -> (Events, [String]) {
    let place = Self.place(step.string("p") ?? "", step.integer("t").map(Int.init))
    guard let index = unanswered.firstIndex(where: { $0.place == place }) else {
      throw Unreadable(text: "an answer to no listen")
    }
    let (_, number, target) = unanswered.remove(at: index)
    if step.string("status") == "ok" {
      let isAsTold = takesHashes && !toldOtherwise.contains(number)
      if !isAsTold { tree.noteNews(number: number) }
      return (events(tree.listened(number: number, target)), [])
    }
    let (ended, requests) = tree.refused(number: number, target)
    var events: Events = [:]
    for listener in listeners where ended.contains(listener.target) {
      events[listener.id] = [.cancel]
    }
    listeners.removeAll { ended.contains($0.target) }
    return (events, sent(requests))
  }

  // MARK: What comes of them

  private func events(_ steps: [SyncedTree.Step]) -> Events {
    var events: Events = [:]
    for step in steps {
      for listener in listeners where listener.target == step.target {
        events[listener.id, default: []] += SyncEvent.all(step)
      }
    }
    return events.filter { !$0.value.isEmpty }
  }

  private mutating func sent(_ requests: [SyncedTree.Request]) -> [String] {
    requests.map { request in
      switch request {
      case .listen(let target, let number, let tag, _, _):
        unanswered.append((Self.place("\(target.path)", tag), number, target))
        return Self.text("q", target, tag)
      case .stop(let target, let tag): return Self.text("n", target, tag)
      }
    }
  }

  private static func text(_ action: String, _ target: SyncedTree.Target, _ tag: Int?) -> String {
    let query = tag == nil || action == "n" ? "" : " " + WireQuery.text(target.parameters)
    return "\(action) \(place("\(target.path)", tag))\(query)"
  }

  private static func text(_ request: JSONMembers) -> String {
    let query = request["q"].map { " " + String(decoding: $0, as: UTF8.self) } ?? ""
    let place = place(request.string("p") ?? "", request.integer("t").map(Int.init))
    return "\(request.string("a") ?? "") \(place)\(query)"
  }

  private static func place(_ path: String, _ tag: Int?) -> String {
    path + (tag.map { "#\($0)" } ?? "")
  }

  // MARK: Reading scripts

  private static func path(_ step: JSONMembers, _ name: String) throws -> Path {
    try Path(parsing: step.string(name) ?? "")
  }

  static func node(_ text: ArraySlice<UInt8>?) throws -> Node {
    guard let text else { return .empty }
    return try text.withUnsafeBytes { try JSONParser.parse($0) }
  }

  private static func entries(
    _ step: JSONMembers, _ name: String
  ) throws -> [PendingWrites.Entry] {
    guard let members = step.object(name) else { throw Unreadable(text: "no entries") }
    return try members.names.map { name in
      PendingWrites.Entry(DataPlace(try Path(parsing: name)), try node(members[name]))
    }
  }

  private static func parameters(_ query: JSONMembers?) throws -> QueryParameters {
    var parameters = QueryParameters()
    guard let query else { return parameters }
    switch query.string("orderBy") {
    case "$key": parameters.order = .key
    case "$value": parameters.order = .value
    case nil, "$priority": parameters.order = .priority
    case let text?: parameters.order = .child(try Path(parsing: text))
    }
    for name in ["startAt", "startAfter", "endAt", "endBefore", "equalTo"] {
      guard let bytes = query[name] else { continue }
      let bound = try bound(bytes)
      if name != "endAt", name != "endBefore" {
        parameters.start = try bound.start(parameters.order, isExclusive: name == "startAfter")
      }
      if name != "startAt", name != "startAfter" {
        parameters.end = try bound.end(parameters.order, isExclusive: name == "endBefore")
      }
    }
    if let count = query.integer("limitToFirst") { parameters.limit = .first(Int(count)) }
    if let count = query.integer("limitToLast") { parameters.limit = .last(Int(count)) }
    return parameters
  }

  /// A value, and perhaps a key, in an array.
  private static func bound(_ bytes: ArraySlice<UInt8>) throws -> QueryBound {
    try QueryBound(String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self))
  }

  private static func expectedEvents(_ step: JSONMembers) throws -> Events {
    var events: Events = [:]
    for event in step["events"].flatMap({ JSONMembers.objects($0) }) ?? [] {
      events[event.string("l") ?? "", default: []].append(try SyncEvent(event))
    }
    return events
  }
}

/// One event of a listener.
enum SyncEvent: Equatable {
  case child(String, key: String, Node, previous: String?)
  case value(Node)
  case cancel

  init(_ event: JSONMembers) throws {
    let node = try SyncScript.node(event["d"])
    switch event.string("t") {
    case "value": self = .value(node)
    case "cancel": self = .cancel
    case let type?:
      self = .child(type, key: event.string("k") ?? "", node, previous: event.string("p"))
    case nil: throw SyncScript.Unreadable(text: "an event without a type")
    }
  }

  /// Those with which a listener begins.
  static func first(of visible: Knowledge, _ parameters: QueryParameters) -> [SyncEvent] {
    let shown = visible.node.filtered(by: parameters)
    var previous: String?
    var events: [SyncEvent] = []
    for (key, node) in shown.children(in: parameters.order) {
      events.append(.child("child_added", key: key.string, node, previous: previous))
      previous = key.string
    }
    return events + (visible.isComplete ? [.value(shown)] : [])
  }

  static func all(_ step: SyncedTree.Step) -> [SyncEvent] {
    let parameters = step.target.parameters
    let before = step.before.node.filtered(by: parameters)
    let after = step.after.node.filtered(by: parameters)
    var events: [SyncEvent] = []
    for (key, node) in before.children(in: parameters.order) where after.child(key).isEmpty {
      events.append(.child("child_removed", key: key.string, node, previous: nil))
    }
    var previous: String?
    var added: [SyncEvent] = []
    var moved: [SyncEvent] = []
    var changed: [SyncEvent] = []
    for (key, node) in after.children(in: parameters.order) {
      defer { previous = key.string }
      let old = before.child(key)
      if old == node { continue }
      if old.isEmpty {
        added.append(.child("child_added", key: key.string, node, previous: previous))
        continue
      }
      if parameters.order.moves(from: old, to: node) {
        moved.append(.child("child_moved", key: key.string, node, previous: previous))
      }
      changed.append(.child("child_changed", key: key.string, node, previous: previous))
    }
    events += added + moved + changed
    if step.after.isComplete, before != after || !step.before.isComplete {
      events.append(.value(after))
    }
    return events
  }
}
