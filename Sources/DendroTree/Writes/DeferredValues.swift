/// The server values of one tree of data, each at the path where admission fills it in.
///
/// A tree beside the data, so that a change costs O(depth), however many server values there are.
package struct DeferredValues: Sendable {
  /// Of the leaf here.
  package private(set) var value: Draft.Deferred.Value?
  /// Of the node here.
  package private(set) var priority: Draft.Deferred.Value?
  package private(set) var children: [Key: DeferredValues] = [:]

  package init() {}

  /// Those of `list` that `node` has a place for; paths are seen from the node.
  ///
  /// - Complexity: O(list · depth).
  package init(_ list: [Draft.Deferred], in node: Node) {
    for item in list {
      let place = node.node(at: item.path)
      if item.isPriority ? place.isEmpty : !place.isLeaf { continue }
      change(item.path.steps) { here in
        if item.isPriority { here.priority = item.value } else { here.value = item.value }
      }
    }
  }

  package var isEmpty: Bool { value == nil && priority == nil && children.isEmpty }

  /// Those at `path` and below, seen from there.
  package func part(at path: Path) -> DeferredValues {
    var part = self
    for key in path.keys {
      guard let child = part.children[key] else { return DeferredValues() }
      part = child
    }
    return part
  }

  /// All of them, in no order.
  package var list: [Draft.Deferred] {
    var list: [Draft.Deferred] = []
    collect(at: .root, &list)
    return list
  }

  private func collect(at path: Path, _ list: inout [Draft.Deferred]) {
    if let value { list.append(Draft.Deferred(path: path, value: value)) }
    if let priority {
      list.append(Draft.Deferred(path: path, isPriority: true, value: priority))
    }
    for (key, child) in children { child.collect(at: path.appending(key), &list) }
  }

  // MARK: Changing

  /// Follows the data, if what is at `path` was replaced: `new` are those of what is there now, `node`
  /// is all the data now. What is above the path may be a branch now and have lost its value, or have been
  /// pruned.
  package mutating func replace(at path: Path, by new: DeferredValues, in node: Node) {
    replace(path.steps, by: new, in: node)
  }

  private mutating func replace(
    _ steps: ArraySlice<Key>, by new: DeferredValues, in node: Node
  ) {
    guard let key = steps.first else {
      self = new
      return
    }
    if !node.isLeaf { value = nil }
    if node.priority == nil { priority = nil }
    children[key, default: DeferredValues()].replace(
      steps.dropFirst(), by: new, in: node.child(key))
    if children[key]?.isEmpty == true { children[key] = nil }
  }

  /// Follows the data, if the priority of the node at `path` was replaced.
  package mutating func replacePriority(at path: Path, by new: Draft.Deferred.Value?) {
    change(path.steps) { $0.priority = new }
  }

  private mutating func change(_ steps: ArraySlice<Key>, _ body: (inout DeferredValues) -> Void) {
    guard let key = steps.first else { return body(&self) }
    children[key, default: DeferredValues()].change(steps.dropFirst(), body)
    if children[key]?.isEmpty == true { children[key] = nil }
  }
}

extension Path {
  /// The keys, to go down by.
  package var steps: ArraySlice<Key> { Array(keys)[...] }
}
