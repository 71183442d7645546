package import DendroTree

/// A tree that is read from JSON, for rules to judge.
///
/// A value: a change gives another tree, which shares with this one what did not change. It follows the data
/// model of the database: `null` and `{}` are nothing, arrays are children `0`, `1`, …, and
/// `{".value": v, ".priority": p}` is a leaf with a priority.
///
/// ```swift
/// let before = try JSONTree(#"{"posts": {"a": {"author": "ann"}}}"#)
/// let after = try before.setting("posts/a/title", to: #""Hello""#)
/// ```
public struct JSONTree: Sendable {
  package let node: Node

  package init(_ node: Node) { self.node = node }

  /// Makes a tree of nothing.
  public init() { node = .empty }

  /// Reads a tree.
  ///
  /// - Throws: ``JSONTreeError`` if the text is no JSON, or no data: a key with one of `. # $ / [ ]`, a depth
  ///   above 32.
  /// - Complexity: O(n).
  public init(_ json: String) throws(JSONTreeError) {
    do {
      node = try JSONParser.parse(json)
    } catch {
      throw JSONTreeError(message: "\(error)")
    }
  }

  /// The tree after a set.
  ///
  /// - Parameters:
  ///   - path: keys, separated by slashes.
  ///   - json: the new value; `null` removes. It may have server values.
  ///   - now: for timestamps; milliseconds since 1970.
  /// - Throws: ``JSONTreeError``.
  public func setting(
    _ path: String, to json: String, now: Int64 = 0
  ) throws(JSONTreeError) -> JSONTree {
    try applying(path, json, now) { bytes, path throws(JSONError) in
      try JSONParser.parseDraft(setting: bytes, at: path)
    }
  }

  /// The tree after an update with several entries.
  ///
  /// - Parameters:
  ///   - path: keys, separated by slashes.
  ///   - json: an object; its keys are paths.
  ///   - now: for timestamps; milliseconds since 1970.
  /// - Throws: ``JSONTreeError``.
  public func updating(
    _ path: String, with json: String, now: Int64 = 0
  ) throws(JSONTreeError) -> JSONTree {
    try applying(path, json, now) { bytes, path throws(JSONError) in
      try JSONParser.parseDraft(updating: bytes, at: path)
    }
  }

  /// The tree after a set of a priority: a number, a string or null.
  ///
  /// - Throws: ``JSONTreeError``.
  public func settingPriority(
    _ path: String, to json: String, now: Int64 = 0
  ) throws(JSONTreeError) -> JSONTree {
    try applying(path, json, now) { bytes, path throws(JSONError) in
      try JSONParser.parseDraft(settingPriority: bytes, at: path)
    }
  }

  private func applying(
    _ path: String, _ json: String, _ now: Int64,
    _ parse: (UnsafeRawBufferPointer, Path) throws(JSONError) -> Draft
  ) throws(JSONTreeError) -> JSONTree {
    do {
      let path = try Path(parsing: path)
      let bytes = Array(json.utf8)
      let draft = try bytes.withUnsafeBytes { bytes in
        Result { () throws(JSONError) in try parse(bytes, path) }
      }.get()
      let write = draft.resolved(time: now, against: node)
      try write.validate()
      var node = node
      _ = node.apply(write)
      return JSONTree(node)
    } catch {
      throw JSONTreeError(message: "\(error)")
    }
  }
}

/// Why a text is no data.
public struct JSONTreeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// One sentence that says what is wrong and where.
  public let message: String
  /// The message.
  public var description: String { message }
}

extension JSONTree: RuleData {
  /// Whether there is anything.
  public var exists: Bool { !node.isEmpty }
  /// The value of a leaf.
  public var scalar: RuleScalar? { node.scalar.flatMap { RuleScalar($0) } }
  /// The priority.
  public var priority: RuleScalar? { node.priority.flatMap { RuleScalar($0) } }

  /// The child at a key; nothing if the key is impossible.
  ///
  /// - Complexity: O(log children).
  public func child(_ key: String) -> JSONTree {
    guard let key = try? Key(key) else { return JSONTree() }
    return JSONTree(node.child(key))
  }

  /// Calls `body` with each child in the order of keys.
  public func forEachChild(_ body: (String, JSONTree) -> Bool) {
    for (key, child) in node.children where !body(key.string, JSONTree(child)) { return }
  }
}

extension JSONTree: CustomStringConvertible {
  /// The tree as JSON.
  public var description: String { JSONWriter.string(node) }
}
