package import DendroTree

/// The hash of a node by which clients and server compare what they have: version 1 of the wire protocol.
///
/// Base64 of SHA-1 over a text that is made of the node's scalars and the hashes of its children; empty for
/// the empty node. Priorities are part of it.
package enum TreeHash {
  /// - Complexity: O(size of the node).
  package static func hash(_ node: Node) -> String {
    if node.isEmpty { return "" }
    var text: [UInt8] = []
    if let priority = node.priority {
      text += "priority:".utf8
      append(priority, to: &text)
      text.append(UInt8(ascii: ":"))
    }
    if let scalar = node.scalar {
      append(scalar, to: &text)
    } else {
      for (key, child) in node.children(in: .priority) {
        text.append(UInt8(ascii: ":"))
        text += key.string.utf8
        text.append(UInt8(ascii: ":"))
        text += self.hash(child).utf8
      }
    }
    return Base64.encode(SHA1.digest(of: text))
  }

  /// The ETag of a node, another one for each value: the hash takes whole numbers beyond 2^53 for doubles, and the text of which
  /// it is made does not say where a string ends. A word for nothing.
  ///
  /// - Complexity: O(size of the node).
  package static func etag(_ node: Node) -> String {
    node.isEmpty ? "null_etag" : Base64.encode(exactDigest(of: node))
  }

  private static func exactDigest(of node: Node) -> [UInt8] {
    var text: [UInt8] = []
    append(exactly: node.priority, to: &text)
    append(exactly: node.scalar, to: &text)
    node.forEachChild { key, child in
      append(exactly: key.string, to: &text)
      text += exactDigest(of: child)
    }
    return SHA1.digest(of: text)
  }

  /// Appends what no other scalar begins with.
  private static func append(exactly scalar: Scalar?, to text: inout [UInt8]) {
    switch scalar {
    case nil: text.append(UInt8(ascii: "-"))
    case .bool(let value): text.append(UInt8(ascii: value ? "t" : "f"))
    case .integer(let value): text += "i\(value);".utf8
    case .double(let value):
      if let whole = Int64(exactly: value) {
        text += "i\(whole);".utf8
      } else {
        text += "d\(value.bitPattern);".utf8
      }
    case .string(let string):
      text.append(UInt8(ascii: "s"))
      append(exactly: string, to: &text)
    case .bytes: preconditionFailure("the data have no bytes")
    }
  }

  private static func append(exactly string: String, to text: inout [UInt8]) {
    text += "\(string.utf8.count);".utf8
    text += string.utf8
  }

  /// Whether the hash of a node takes longer than other clients may wait.
  ///
  /// - Complexity: O(1).
  package static func takesLong(_ node: Node) -> Bool {
    var budget = 100
    return takesLong(node, &budget)
  }

  /// - Parameter budget: how many nodes, or KiB of text, take no long time.
  private static func takesLong(_ node: Node, _ budget: inout Int) -> Bool {
    guard node.isBranch else {
      if case .string(let text)? = node.scalar { budget -= text.utf8.count >> 10 }
      return budget < 0
    }
    budget -= node.childCount
    if budget < 0 { return true }
    return node.children(in: .key).contains { takesLong($0.node, &budget) }
  }

  private static func append(_ scalar: Scalar, to text: inout [UInt8]) {
    switch scalar {
    case .bool(let value): text += (value ? "boolean:true" : "boolean:false").utf8
    case .integer(let value): append(Double(value), to: &text)
    case .double(let value): append(value, to: &text)
    case .string(let string):
      text += "string:".utf8
      text += string.utf8
    case .bytes: preconditionFailure("the data have no bytes")
    }
  }

  private static func append(_ number: Double, to text: inout [UInt8]) {
    text += "number:".utf8
    // Both zeros are one value.
    let bits = number == 0 ? 0 : number.bitPattern
    let digits = String(bits, radix: 16)
    text += repeatElement(UInt8(ascii: "0"), count: 16 - digits.utf8.count)
    text += digits.utf8
  }
}
