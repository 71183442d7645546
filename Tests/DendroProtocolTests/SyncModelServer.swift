import DendroProtocol
import DendroTestSupport
import DendroTree
import Testing

/// A server of one database, small enough to be seen through: everything in order, pushes before answers.
struct SyncModelServer {
  private(set) var tree = Node.empty
  private var sessions: [Int: [WireLocation: Node]] = [:]
  private(set) var deniedCount = 0
  /// The tree after each write.
  private var states: [Node]
  /// Whether it tells clients what has changed since a write.
  private let resumes: Bool
  private(set) var resumedCount = 0

  init(_ tree: Node, resumes: Bool = false) {
    self.tree = tree
    self.resumes = resumes
    states = [tree]
  }

  /// The number of the last write.
  private var lsn: UInt64 { UInt64(states.count) }

  /// What goes to which client.
  typealias Sent = [(client: Int, message: [UInt8])]

  mutating func open(_ client: Int) -> Sent {
    sessions[client] = [:]
    let server = resumes ? NumberedServer(branch: "b", lsn: lsn, since: 0) : nil
    return [
      (
        client,
        Self.bytes(
          WireText.hello(time: 1_700_000_000_000, host: "h", session: "s", server: server))
      )
    ]
  }

  mutating func close(_ client: Int) { sessions[client] = nil }

  /// Handles a message of a client.
  mutating func receive(
    _ message: [UInt8], from client: Int, _ generator: inout SeededGenerator
  ) throws -> Sent {
    guard case .request(let request) = WireMessage(message) else { return [] }
    func answer(_ status: String = "ok", _ content: WireText.Content = .nothing) -> Sent {
      [(client, Self.bytes(WireText.answer(request.number, status: status, content)))]
    }
    switch try request.action.get() {
    case .listen(let location, let hash, let since):
      if Self.isForbidden(location.path) {
        return answer("permission_denied", .text("Permission denied"))
      }
      let node = shown(location)
      sessions[client]?[location] = node
      #expect((since != nil) == (resumes && location.query == nil))
      var pushes: [[UInt8]] = []
      if TreeHash.hash(node) != hash {
        let resumed = since.flatMap { self.resumed(since: $0, location, &generator) }
        if resumed != nil { resumedCount += 1 }
        pushes = [resumed ?? Self.whole(node, location)]
      }
      return pushes.map { (client, $0) }
        + answer("ok", since == nil ? .object : .json("{\"lsn\":\(lsn)}"))
    case .lsn: return answer("ok", .json("{\"lsn\":\(lsn)}"))
    case .unlisten(let location):
      sessions[client]?[location] = nil
      return answer()
    case .get(let location): return answer("ok", .node(shown(location)))
    case .write(let draft, let path, let condition):
      if Self.isForbidden(path) {
        deniedCount += 1
        return answer("permission_denied", .text("Permission denied"))
      }
      if let condition {
        let node = tree.node(at: path)
        guard !condition.isPriority, TreeHash.hash(node) == condition.hash else {
          return answer("datastale")
        }
      }
      return write(draft.write, &generator) + answer()
    default: return answer()
    }
  }

  /// Makes a write, and shows it to all who listen.
  mutating func write(_ write: Write, _ generator: inout SeededGenerator) -> Sent {
    _ = tree.apply(write)
    states.append(tree)
    var sent: Sent = []
    for client in sessions.keys.sorted() {
      for (location, old) in sessions[client] ?? [:] {
        let new = shown(location)
        if old == new { continue }
        sessions[client]?[location] = new
        sent.append((client, Self.push(from: old, to: new, location, &generator)))
      }
    }
    return sent
  }

  /// What has changed at a location since a write. It is wrong now and then.
  private func resumed(
    since lsn: UInt64, _ location: WireLocation, _ generator: inout SeededGenerator
  ) -> [UInt8]? {
    guard lsn > 0, lsn <= states.count else { return nil }
    // The log is read up to some write; the others come meanwhile.
    let read =
      generator.oneIn(2)
      ? states.count - 1 : Int(lsn) - 1 + generator.below(states.count - Int(lsn) + 1)
    var places: Set<Path> = []
    for index in Int(lsn)..<max(Int(lsn), read + 1) {
      Node.difference(
        from: states[index - 1].node(at: location.path), to: states[index].node(at: location.path)
      ) { path, _, _ in places.insert(path) }
    }
    let node = states[read].node(at: location.path)
    let parts = places.filter { place in
      !places.contains { $0 != place && $0.isPrefix(of: place) }
    }.sorted().map { (path: $0, node: node.node(at: $0)) }
    var later: [(path: Path, node: Node)] = []
    Node.difference(from: node, to: tree.node(at: location.path)) { path, _, node in
      later.append((path, node))
    }
    if parts.isEmpty || parts[0].path.isRoot || later.first?.path.isRoot == true { return nil }
    let hash = generator.oneIn(8) ? "wrong" : TreeHash.hash(node)
    let text = WireText.resuming(Self.removedLast(parts), at: location.path, hash: hash)
    return Self.bytes(WireText.resumed(text, Self.removedLast(later)))
  }

  private static func removedLast(
    _ parts: [(path: Path, node: Node)]
  ) -> [(path: Path, node: Node)] {
    parts.filter { !$0.node.isEmpty } + parts.filter(\.node.isEmpty)
  }

  /// Whether the server denies every access to a location.
  static func isForbidden(_ path: Path) -> Bool {
    path.keys.contains { $0.string == "no" }
  }

  private func shown(_ location: WireLocation) -> Node {
    tree.node(at: location.path).filtered(by: location.query)
  }

  // MARK: Messages

  private static func push(
    from old: Node, to new: Node, _ location: WireLocation, _ generator: inout SeededGenerator
  ) -> [UInt8] {
    if generator.oneIn(3) || old.priority != new.priority { return whole(new, location) }
    var parts: [(path: Path, node: Node)] = []
    if location.query == nil {
      Node.difference(from: old, to: new) { path, _, new in parts.append((path, new)) }
    } else {
      for key in Set(old.children.map(\.key) + new.children.map(\.key)).sorted()
      where old.child(key) != new.child(key) {
        parts.append((Path.root.appending(key), new.child(key)))
      }
    }
    guard let change = PlaceChange(parts) else { return whole(new, location) }
    return bytes(WireText.push(change, at: location.path, tag: location.tag))
  }

  private static func whole(_ node: Node, _ location: WireLocation) -> [UInt8] {
    bytes(WireText.push(.put(.root, node), at: location.path, tag: location.tag))
  }

  private static func bytes(_ text: AnswerText) -> [UInt8] {
    var text = text
    return text.rest()
  }
}
