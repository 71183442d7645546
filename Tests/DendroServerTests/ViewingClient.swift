import Dendro
import DendroProtocol
import DendroTree
import Testing

/// A client with a view of the data, which it keeps as the official one does: from the pushes alone, and with
/// events of its own making.
///
/// A listen without bounds and limits serves all views at its path and below; every other query has a window of
/// its own, known by a tag.
final class ViewingClient {
  /// What one query shows.
  private final class View {
    let path: Path
    let parameters: QueryParameters
    /// As it is sent; nil for the whole location.
    let query: String?
    /// Of its own listen; nil if a listen without a tag serves it.
    var tag: Int?
    var listeners: [String] = []
    var node = Node.empty
    var generator = EventGenerator()

    init(_ path: Path, _ parameters: QueryParameters, _ query: String?) {
      self.path = path
      self.parameters = parameters
      self.query = query
    }
  }

  /// An event as one listener gets it.
  struct Seen: Equatable {
    let type: DataEventType
    let key: String?
    let node: Node
    let previousKey: String?
  }

  private var socket: WebSocketClient
  private let target: String
  private let served: Served
  private var views: [View] = []
  /// What the listens without a tag have got, by their paths.
  private var wholes: [Path: Node] = [:]
  /// What the others have got, by their tags.
  private var windows: [Int: Node] = [:]
  private var lastTag = 0
  private var seen: [String: [Seen]] = [:]

  init(_ served: Served, _ target: String = "/.ws?v=5&ns=app") throws {
    self.served = served
    self.target = target
    socket = try WebSocketClient(served, target)
  }

  // MARK: Listening

  /// Begins to listen to all kinds of events.
  ///
  /// - Parameter query: a query object as it is sent.
  func listen(_ name: String, at path: Path, _ query: String) throws {
    let parameters = try WireQuery.parameters(#require(JSONMembers(Array(query.utf8)[...])))
    let view: View
    if let known = views.first(where: { $0.path == path && $0.parameters == parameters }) {
      view = known
    } else {
      view = View(path, parameters, parameters.showsAll ? nil : query)
      try begin(view)
      view.node = try #require(data(of: view))
      views.append(view)
    }
    view.listeners.append(name)
    let added = view.generator.initialEvents(of: view.node, for: parameters, .childAdded)
    let value = view.generator.initialEvents(of: view.node, for: parameters, .value)
    note(added + value, [name])
  }

  private func begin(_ view: View) throws {
    if whole(over: view.path) != nil { return }
    if view.query == nil {
      wholes[view.path] = .empty
      try call("q", body(view, hash: ""))
      // Its data serves those below as well.
      for other in views where view.path.isPrefix(of: other.path) {
        guard other.tag != nil || wholes[other.path] != nil else { continue }
        if other.path == view.path, other.query == nil { continue }
        try call("n", body(other, hash: nil))
        if let tag = other.tag { windows[tag] = nil } else { wholes[other.path] = nil }
        other.tag = nil
      }
    } else {
      lastTag += 1
      view.tag = lastTag
      windows[lastTag] = .empty
      views.append(view)
      defer { views.removeLast() }
      try call("q", body(view, hash: ""))
    }
  }

  private func body(_ view: View, hash: String?) -> String {
    var body = "{\"p\":\"\(view.path)\""
    if let query = view.query, let tag = view.tag { body += ",\"q\":\(query),\"t\":\(tag)" }
    if let hash { body += ",\"h\":\"\(hash)\"" }
    return body + "}"
  }

  private func whole(over path: Path) -> Path? { wholes.keys.first { $0.isPrefix(of: path) } }

  /// What the view's listen has got; nil if it has none.
  private func data(of view: View) -> Node? {
    if let whole = whole(over: view.path), let relative = view.path.relative(to: whole) {
      return wholes[whole]?.node(at: relative)
    }
    return view.tag.flatMap { windows[$0] }
  }

  /// Connects again, with all listens and the hashes of what is known.
  ///
  /// - Returns: the pushes.
  func reconnect() throws -> [String] {
    socket = try WebSocketClient(served, target + "&ls=\(socket.session)")
    var pushes: [String] = []
    for view in views {
      guard let own = view.tag.flatMap({ windows[$0] }) ?? wholes[view.path] else { continue }
      // A window may be that of a query which a whole location serves.
      if view.tag == nil, view.query != nil { continue }
      pushes += try socket("q", body(view, hash: TreeHash.hash(own))).dropLast()
    }
    return pushes
  }

  /// What the listens without a tag show of a location.
  func shown(at path: Path) -> Node? {
    whole(over: path).flatMap { whole in
      path.relative(to: whole).flatMap { wholes[whole]?.node(at: $0) }
    }
  }

  /// What the queries with bounds or a limit show.
  var windowsShown: [(path: Path, parameters: QueryParameters, node: Node)] {
    views.filter { $0.query != nil }.map { ($0.path, $0.parameters, $0.node) }
  }

  // MARK: Events

  /// The events of each listener since the last call, after all pushes so far.
  func take() throws -> [String: [Seen]] {
    try call("s", "{\"c\":{}}")
    defer { seen = [:] }
    return seen
  }

  private func call(_ action: String, _ body: String) throws {
    let messages = try socket(action, body)
    for push in messages.dropLast() { try apply(push) }
    #expect(messages.last?.hasPrefix("{\"s\":\"ok\",") == true, "\(action) \(body)")
  }

  private func apply(_ push: String) throws {
    let message = try #require(JSONMembers(Array("{\(push)}".utf8)[...]))
    let body = try #require(message.object("b"))
    let path = try Path(parsing: #require(body.string("p")))
    let data = try #require(body["d"])
    var parts: [(path: Path, node: Node)] = []
    switch message.string("a") {
    case "d": parts = [(path, try Self.node(data))]
    case "m":
      let members = try #require(JSONMembers(data))
      parts = try members.names.map { name in
        (path.appending(try Path(parsing: name)), try Self.node(#require(members[name])))
      }
    default: Issue.record("unknown push \(push)")
    }
    if let tag = body.integer("t") {
      try apply(parts, toWindow: Int(tag))
    } else {
      for (path, node) in parts { apply(node, at: path) }
    }
    for view in views where !view.listeners.isEmpty {
      guard let new = self.data(of: view) else { continue }
      let request = EventGenerator.Request(
        view.parameters, [.added, .removed, .changed, .moved, .value])
      let events = view.generator.events(from: view.node, to: new, for: [request])[0]
      view.node = new
      note(events, view.listeners)
    }
  }

  private func apply(_ node: Node, at path: Path) {
    for whole in wholes.keys {
      if let relative = path.relative(to: whole) {
        wholes[whole]?.graft(node, at: relative)
      } else if let relative = whole.relative(to: path) {
        wholes[whole] = node.node(at: relative)
      }
    }
  }

  /// Changes of children in the window come before those of others, which may take their places; after each
  /// change the window is cut to its limit.
  private func apply(_ parts: [(path: Path, node: Node)], toWindow tag: Int) throws {
    let view = try #require(views.first { $0.tag == tag }, "a push for a listen that has ended")
    var window = try #require(windows[tag])
    let relative = try parts.map { (try #require($0.path.relative(to: view.path)), $0.node) }
    let isKnown = relative.map { path, _ in
      path.isRoot || !window.node(at: Path(keys: path.keys.prefix(1).map(\.self))).isEmpty
    }
    for turn in [true, false] {
      for (part, known) in zip(relative, isKnown) where known == turn {
        window.graft(part.1, at: part.0)
        window = window.filtered(by: view.parameters)
      }
    }
    windows[tag] = window
  }

  private func note(_ events: [Event], _ listeners: [String]) {
    for listener in listeners where !events.isEmpty {
      seen[listener, default: []] += events.map { event in
        let isSorted = event.type != .value && event.type != .childRemoved
        return Seen(
          type: event.type, key: event.key?.string, node: event.node,
          previousKey: isSorted ? event.previousKey?.string : nil)
      }
    }
  }

  static func node(_ json: ArraySlice<UInt8>) throws -> Node {
    try json.withUnsafeBytes { bytes in try JSONParser.parse(bytes) }
  }
}
