import Dendro
import DendroTree
import TestSupport

/// What the events of a view are, with nothing clever: filter the node before, filter the node after,
/// compare, sort. As lines of text, the value with everything in it.
enum EventModel {
  static func lines(from old: Node, to new: Node, _ parameters: QueryParameters) -> [String] {
    let before = ModelQuery.children(of: old, parameters)
    let after = ModelQuery.children(of: new, parameters)

    func line(_ type: DataEventType, _ key: String, _ node: Node) -> String {
      let index = after.firstIndex { same($0.key, key) } ?? 0
      let previous = type == .childRemoved || index == 0 ? nil : after[index - 1].key
      return EventModel.line(type, key, node, previous)
    }

    var lines: [String] = []
    for child in before where !after.contains(where: { same($0.key, child.key) }) {
      lines.append(line(.childRemoved, child.key, child.node))
    }
    for child in after where !before.contains(where: { same($0.key, child.key) }) {
      lines.append(line(.childAdded, child.key, child.node))
    }
    var changed: [String] = []
    for child in after {
      guard let was = before.first(where: { same($0.key, child.key) }),
        ModelTree(was.node) != ModelTree(child.node)
      else { continue }
      if moves(was.node, child.node, parameters.order) {
        lines.append(line(.childMoved, child.key, child.node))
      }
      changed.append(line(.childChanged, child.key, child.node))
    }
    lines += changed
    let value = shown(new, after, parameters)
    if ModelTree(value) != ModelTree(shown(old, before, parameters)) {
      lines.append(line(.value, "", value))
    }
    return lines
  }

  /// What one registration is told first.
  static func initialLines(
    of node: Node, _ parameters: QueryParameters, _ type: DataEventType
  ) -> [String] {
    let children = ModelQuery.children(of: node, parameters)
    switch type {
    case .value: return [line(.value, "", shown(node, children, parameters), nil)]
    case .childAdded:
      return children.indices.map { index in
        line(
          .childAdded, children[index].key, children[index].node,
          index == 0 ? nil : children[index - 1].key)
      }
    default: return []
    }
  }

  /// The view as a node: all of it, or the children that are shown, without a priority.
  private static func shown(
    _ node: Node, _ children: [ModelQuery.Child], _ parameters: QueryParameters
  ) -> Node {
    if parameters.start == nil && parameters.end == nil && parameters.limit == nil { return node }
    var tree = ModelTree()
    for child in children { tree.children[Array(child.key.utf8)] = ModelTree(child.node) }
    return tree.node()
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

  static func line(
    _ type: DataEventType, _ key: String, _ node: Node, _ previous: String?
  ) -> String {
    type == .value
      ? "value \(ModelTree(node))"
      : "\(type) \(key) after \(previous.map { "\"\($0)\"" } ?? "nothing") \(ModelTree(node))"
  }

  static func line(_ event: Event) -> String {
    line(event.type, event.key?.string ?? "", event.node, event.previousKey?.string)
  }
}

extension ModelTree {
  fileprivate func node() -> Node {
    if let scalar { return Node(scalar, priority: priority) }
    var builder = NodeBuilder()
    for (key, child) in children {
      if let key = try? Key(String(decoding: key, as: UTF8.self)) {
        builder.append(key, child.node())
      }
    }
    return builder.finish(priority: priority)
  }
}
