import Dendro
import DendroTree
import TestSupport

/// What the events of a view are, with nothing clever: filter the node before, filter the node after,
/// compare, sort. Written as `Recorder` writes them.
enum EventModel {
  typealias Told = (type: DataEventType, line: String)

  static func events(from old: Node, to new: Node, _ parameters: QueryParameters) -> [Told] {
    if old == new { return [] }
    let before = ModelQuery.children(of: old, parameters)
    let after = ModelQuery.children(of: new, parameters)

    func told(_ type: DataEventType, _ child: ModelQuery.Child) -> Told {
      let index = after.firstIndex { same($0.key, child.key) } ?? 0
      return EventModel.told(type, child, after: index == 0 ? nil : after[index - 1].key)
    }

    var events: [Told] = []
    for child in before where !after.contains(where: { same($0.key, child.key) }) {
      events.append(told(.childRemoved, child))
    }
    for child in after where !before.contains(where: { same($0.key, child.key) }) {
      events.append(told(.childAdded, child))
    }
    var changed: [Told] = []
    for child in after {
      guard let was = before.first(where: { same($0.key, child.key) }),
        was.node != child.node
      else { continue }
      if moves(was.node, child.node, parameters.order) { events.append(told(.childMoved, child)) }
      changed.append(told(.childChanged, child))
    }
    events += changed
    let value = shown(new, after, parameters)
    if value != shown(old, before, parameters) { events.append(told(.value, ("", value))) }
    return events
  }

  /// What one registration is told first.
  static func initialEvents(
    of node: Node, _ parameters: QueryParameters, _ type: DataEventType
  ) -> [Told] {
    let children = ModelQuery.children(of: node, parameters)
    switch type {
    case .value: return [told(.value, ("", shown(node, children, parameters)), after: nil)]
    case .childAdded:
      return children.indices.map {
        told(.childAdded, children[$0], after: $0 == 0 ? nil : children[$0 - 1].key)
      }
    default: return []
    }
  }

  /// The view as a node: all of it, or the children that are shown, without a priority.
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

  /// Spelled the same: equal strings may differ in their normalisation.
  private static func same(_ a: String, _ b: String) -> Bool { a.utf8.elementsEqual(b.utf8) }

  // MARK: Lines

  private static func told(
    _ type: DataEventType, _ child: ModelQuery.Child, after previous: String?
  ) -> Told {
    let name =
      switch type {
      case .value: "value"
      case .childRemoved: "removed"
      case .childAdded: "added"
      case .childChanged: "changed"
      case .childMoved: "moved"
      }
    switch type {
    case .value: return (type, "value \(text(child.node))")
    case .childRemoved: return (type, "removed \(child.key)=\(text(child.node))")
    default:
      return (type, "\(name) \(child.key)=\(text(child.node)) after \(previous ?? "nil")")
    }
  }

  static func told(_ event: Event) -> Told {
    told(event.type, (event.key?.string ?? "", event.node), after: event.previousKey?.string)
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
    }
  }
}
