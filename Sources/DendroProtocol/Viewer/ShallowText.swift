package import DendroTree

/// A location with its children, of which those that have children of their own show only how many: what the
/// data viewer lists.
package enum ShallowText {
  /// The most children that are listed; `.more` says how many follow.
  package static let childLimit = 200_000

  /// A leaf as in an export; an object with the children's forms and the own priority; null for nothing.
  package static func whole(_ node: Node, childLimit: Int = childLimit) -> [UInt8] {
    guard node.isBranch else { return form(node) }
    var bytes = Array("{".utf8)
    var count = 0
    for (key, child) in node.children {
      if count == childLimit { break }
      if count > 0 { bytes.append(UInt8(ascii: ",")) }
      count += 1
      JSONText.append(string: key.string, to: &bytes)
      bytes.append(UInt8(ascii: ":"))
      bytes += form(child)
    }
    if node.childCount > count { bytes += Array(",\".more\":\(node.childCount - count)".utf8) }
    if let priority = node.priority {
      bytes += Array(",\".priority\":".utf8)
      JSONText.append(priority, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  /// A leaf as in an export; `{".n":COUNT}` for a node with children; null for nothing.
  package static func form(_ node: Node) -> [UInt8] {
    guard node.isBranch else {
      var text = JSONText(node, style: JSONStyle(.export))
      var bytes: [UInt8] = []
      while !text.isAtEnd { bytes += text.next() }
      return bytes
    }
    var bytes = Array("{\".n\":\(node.childCount)".utf8)
    if let priority = node.priority {
      bytes += Array(",\".priority\":".utf8)
      JSONText.append(priority, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  /// The children of a location that a change concerns; nil if it concerns all of it.
  package static func keys(of change: PlaceChange) -> [Key]? {
    var keys: [Key] = []
    switch change {
    case .put(let path, _):
      guard let key = path.firstKey else { return nil }
      keys = [key]
    case .patch(let base, let parts):
      if let key = base.firstKey { return [key] }
      for (path, _) in parts {
        guard let key = path.firstKey else { return nil }
        if key != keys.last { keys.append(key) }
      }
    }
    return keys
  }
}

extension Path {
  fileprivate var firstKey: Key? { keys.first { _ in true } }
}
