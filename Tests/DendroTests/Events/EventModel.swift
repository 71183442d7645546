import Dendro
import DendroTree
import DendroTestSupport

/// The oracle's events of a query, written as `Recorder` writes them.
enum EventModel {
  typealias Entry = (type: DataEventType, line: String)

  static func events(from old: Node, to new: Node, _ parameters: QueryParameters) -> [Entry] {
    ModelEvents.events(from: view(old, parameters), to: view(new, parameters)) {
      moves($0, $1, parameters.order)
    }.map(rendered)
  }

  /// The first events of one registration.
  static func initialEvents(
    of node: Node, _ parameters: QueryParameters, _ type: DataEventType
  ) -> [Entry] {
    ModelEvents.initialEvents(of: view(node, parameters), kind(type)).map(rendered)
  }

  private static func view(_ node: Node, _ parameters: QueryParameters) -> ModelEvents.View {
    let children = ModelQuery.children(of: node, parameters)
    return (shown(node, children, parameters), children)
  }

  /// What the query shows, as a node: all of it, or the children that are shown, without a priority.
  private static func shown(
    _ node: Node, _ children: [ModelQuery.Child], _ parameters: QueryParameters
  ) -> Node {
    if parameters.start == nil && parameters.end == nil && parameters.limit == nil { return node }
    var builder = NodeBuilder()
    for child in children {
      if let key = try? Key(child.key) { builder.append(key, child.node) }
    }
    return builder.finish()
  }

  /// By key nothing moves; by value whatever changes; otherwise what is sorted otherwise.
  private static func moves(_ old: Node, _ new: Node, _ order: SortOrder) -> Bool {
    switch order {
    case .key: return false
    case .value: return true
    case .priority: return old.priority != new.priority
    case .child(let path):
      let (a, b) = (old.node(at: path), new.node(at: path))
      return a.isBranch || b.isBranch ? a.isBranch != b.isBranch : a.scalar != b.scalar
    }
  }

  // MARK: Lines

  private static func kind(_ type: DataEventType) -> ModelEvents.Kind {
    switch type {
    case .value: .value
    case .childRemoved: .removed
    case .childAdded: .added
    case .childChanged: .changed
    case .childMoved: .moved
    }
  }

  private static func rendered(_ event: ModelEvents.Event) -> Entry {
    let (child, previous) = (event.child, event.previous ?? "nil")
    let key = child.key
    switch event.kind {
    case .value: return (.value, "value \(text(child.node))")
    case .removed: return (.childRemoved, "removed \(key)=\(text(child.node))")
    case .added: return (.childAdded, "added \(key)=\(text(child.node)) after \(previous)")
    case .changed: return (.childChanged, "changed \(key)=\(text(child.node)) after \(previous)")
    case .moved: return (.childMoved, "moved \(key)=\(text(child.node)) after \(previous)")
    }
  }

  /// The engine's own, in the same words.
  static func rendered(_ event: Event) -> Entry {
    rendered((kind(event.type), (event.key?.string ?? "", event.node), event.previousKey?.string))
  }

  /// The export form, as `shown` shows it, with 1 and 1.0 alike.
  private static func text(_ node: Node) -> String {
    guard node.isBranch else {
      let value = text(node.scalar)
      return node.priority.map { "{.priority:\(text($0)),.value:\(value)}" } ?? value
    }
    var entries = node.children.map { ($0.key.string, text($0.node)) }
    if let priority = node.priority { entries.append((".priority", text(priority))) }
    entries.sort { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
    return "{" + entries.map { "\($0.0):\($0.1)" }.joined(separator: ",") + "}"
  }

  private static func text(_ scalar: Scalar?) -> String {
    switch scalar {
    case nil: "null"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .double(let value): Int64(exactly: value).map { "\($0)" } ?? "\(value)"
    case .string(let value): "\"\(value)\""
    case .bytes(let value): "\(value.count) bytes"
    }
  }
}
