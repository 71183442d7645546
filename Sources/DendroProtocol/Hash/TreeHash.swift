package import DendroTree

/// The hash of a node by which clients and server compare what they have: version 1 of the wire protocol.
///
/// Base64 of SHA-1 over a text that is made of the node's scalars and the hashes of its children; empty for
/// the empty node. Priorities are part of it.
package enum TreeHash {
  /// - Complexity: O(size of the node).
  package static func hash(_ node: Node) -> String {
    if node.isEmpty { return "" }
    var hash = SHA1()
    if let priority = node.priority {
      hash.update("priority:".utf8)
      append(priority, to: &hash)
      hash.update(":".utf8)
    }
    if let scalar = node.scalar {
      append(scalar, to: &hash)
    } else {
      for (key, child) in node.children(in: .priority) {
        hash.update(":".utf8)
        hash.update(key.string.utf8)
        hash.update(":".utf8)
        hash.update(self.hash(child).utf8)
      }
    }
    return Base64.encode(hash.digest())
  }

  /// The ETag of a node: its hash, and a word for nothing.
  package static func etag(_ node: Node) -> String {
    node.isEmpty ? "null_etag" : hash(node)
  }

  private static func append(_ scalar: Scalar, to hash: inout SHA1) {
    switch scalar {
    case .bool(let value): hash.update((value ? "boolean:true" : "boolean:false").utf8)
    case .integer(let value): append(Double(value), to: &hash)
    case .double(let value): append(value, to: &hash)
    case .string(let text):
      hash.update("string:".utf8)
      hash.update(text.utf8)
    }
  }

  private static func append(_ number: Double, to hash: inout SHA1) {
    hash.update("number:".utf8)
    // Both zeros are one value.
    let bits = number == 0 ? 0 : number.bitPattern
    let digits = String(bits, radix: 16)
    hash.update(repeatElement(UInt8(ascii: "0"), count: 16 - digits.utf8.count))
    hash.update(digits.utf8)
  }
}
