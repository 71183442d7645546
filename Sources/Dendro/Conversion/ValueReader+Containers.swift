import DendroTree
import Foundation

extension ValueReader {
  mutating func dictionary(_ dictionary: [String: Any]) throws(ValidationError) -> Node {
    for key in dictionary.keys where key.utf8.first == UInt8(ascii: ".") {
      return try special(
        dictionary[".value"], dictionary[".priority"], dictionary[".sv"], count: dictionary.count
      ) { (reader, builder) throws(ValidationError) in
        for (key, value) in dictionary where !Self.isMetadata(key) {
          try reader.child(key, value, &builder)
        }
      }
    }
    var builder = NodeBuilder()
    for (key, value) in dictionary { try child(key, value, &builder) }
    return builder.finish()
  }

  /// Dictionaries whose type says what all values are. To cast them to others would copy them.
  ///
  /// - Parameter scalar: of a value; nil where there is more to say about it.
  mutating func scalars<Value>(
    _ dictionary: [String: Value], _ scalar: (Value) -> Scalar?
  ) throws(ValidationError) -> Node {
    for key in dictionary.keys where key.utf8.first == UInt8(ascii: ".") {
      return try self.dictionary(dictionary.mapValues { $0 as Any })
    }
    var builder = NodeBuilder()
    for (key, value) in dictionary {
      if append(key, scalar(value), &builder) { continue }
      try child(key, value, &builder)
    }
    return builder.finish()
  }

  mutating func dictionary(
    _ dictionary: [AnyHashable: Any]
  ) throws(ValidationError) -> Node {
    // Most of these are server values.
    if dictionary.count == 1, let (key, content) = dictionary.first, key.base as? String == ".sv" {
      return try deferredLeaf(content)
    }
    return try pairs(count: dictionary.count, dictionary.lazy.map { ($0.key.base, $0.value) })
  }

  /// Enumerated as it is: made a Swift dictionary, keys that differ only in normalization would meet.
  mutating func dictionary(_ dictionary: NSDictionary) throws(ValidationError) -> Node {
    try pairs(count: dictionary.count, dictionary.lazy.map { ($0.key, $0.value) })
  }

  mutating func pairs(
    count: Int, _ pairs: some Sequence<(Any, Any)>
  ) throws(ValidationError) -> Node {
    var value: Any?
    var priority: Any?
    var serverValue: Any?
    var isSpecial = false
    for (key, content) in pairs {
      guard let key = key as? String else {
        throw invalid("the key \(Self.shown(key)) is not a string")
      }
      switch key {
      case ".value": value = content
      case ".priority": priority = content
      case ".sv": serverValue = content
      default: continue
      }
      isSpecial = true
    }
    if isSpecial {
      return try special(value, priority, serverValue, count: count) {
        (reader, builder) throws(ValidationError) in
        for (key, content) in pairs {
          if let key = key as? String, !Self.isMetadata(key) {
            try reader.child(key, content, &builder)
          }
        }
      }
    }
    var builder = NodeBuilder()
    for (key, content) in pairs { try child(key as! String, content, &builder) }
    return builder.finish()
  }

  mutating func array(_ elements: some Collection<Any>) throws(ValidationError) -> Node {
    var builder = NodeBuilder()
    var index = 0
    for element in elements {
      try child(String(index), element, &builder)
      index += 1
    }
    return builder.finish()
  }

  mutating func array(_ array: NSArray) throws(ValidationError) -> Node {
    var builder = NodeBuilder()
    for index in 0..<array.count { try child(String(index), array[index], &builder) }
    return builder.finish()
  }

  mutating func child(
    _ name: String, _ value: Any, _ builder: inout NodeBuilder
  ) throws(ValidationError) {
    if append(name, plainScalar(value), &builder) { return }
    try child(name, &builder) { (reader) throws(ValidationError) in try reader.node(value) }
  }

  /// Adds a leaf on the shortest way.
  ///
  /// - Returns: whether it did. If not, `child` knows why, or finds another value than a scalar.
  @inline(__always)
  private func append(
    _ name: String, _ scalar: Scalar?, _ builder: inout NodeBuilder
  ) -> Bool {
    guard let scalar, outerDepth + keys.count < Limits.depth else { return false }
    return builder.append(name, scalar)
  }

  /// Adds what `read` makes of the value of a key.
  @inline(__always)
  mutating func child(
    _ name: String, _ builder: inout NodeBuilder,
    _ read: (inout ValueReader) throws(ValidationError) -> Node
  ) throws(ValidationError) {
    let key: Key
    do throws(ValidationError) {
      key = try Key(name)
    } catch {
      throw invalid(error.message)
    }
    keys.append(key)
    // Before going down: containers that hold themselves end here. Not so `NSMutableDictionary` and
    // `NSMutableArray` of Foundation for Linux: there whatever hands out an element bridges all below it
    // first, and uses up the stack.
    guard outerDepth + keys.count <= Limits.depth else {
      throw tooDeep()
    }
    let node = try read(&self)
    keys.removeLast()
    if !node.isEmpty { builder.append(key, node) }
  }
}
