import DendroEngine
import DendroTree
import Foundation

/// Values and updates from outside, checked and made into writes on the caller's thread.
extension Draft {
  /// `setValue(_:)`.
  init(setting value: Any?, at path: Path) throws(ValidationError) {
    guard let value else {
      self.init(.remove(path))
      return
    }
    var reader = ValueReader(outerDepth: path.count)
    let node = try reader.node(value)
    self.init(setting: node, reader.deferred, at: path)
  }

  /// `setValue(_:andPriority:)`: a `.priority` in the value wins; nothing has no priority, so it is not
  /// even looked at then.
  init(setting value: Any?, priority: Any?, at path: Path) throws(ValidationError) {
    var reader = ValueReader(outerDepth: path.count)
    guard let value else {
      self.init(.remove(path))
      return
    }
    var node = try reader.node(value)
    if !node.isEmpty, !reader.hasOwnPriority {
      node = node.settingPriority(try reader.priority(priority))
    }
    self.init(setting: node, reader.deferred, at: path)
  }

  init(setting node: Node, _ deferred: [Draft.Deferred], at path: Path) {
    if node.isEmpty {
      self.init(.remove(path))
    } else if let number = node.wholeIncrement(deferred) {
      self.init(.increment(path, number))
    } else {
      self.init(.set(path, node), deferred: deferred)
    }
  }

  /// `setPriority(_:)`.
  init(settingPriority priority: Any?, at path: Path) throws(ValidationError) {
    var reader = ValueReader(outerDepth: path.count)
    let scalar = try reader.priority(priority)
    self.init(.setPriority(path, scalar), deferred: reader.deferred)
  }

  /// `updateChildValues(_:)`: keys are paths, each of which is replaced.
  init(updating values: [AnyHashable: Any], at path: Path) throws(ValidationError) {
    var entries: [Write.Entry] = []
    entries.reserveCapacity(values.count)
    var deferred: [Draft.Deferred] = []
    for (key, value) in values {
      guard let key = key.base as? String else {
        throw ValidationError(.invalidData, "the update path \(key.base) is not a string")
      }
      entries.append(try Self.entry(key, value, outerDepth: path.count, &deferred))
    }
    // In order, neighbours share most of their paths, which the log leaves out then.
    self.init(.update(path, entries.inOrder), deferred: deferred)
    try write.validate()
  }

  private static func entry(
    _ key: String, _ value: Any, outerDepth: Int, _ deferred: inout [Draft.Deferred]
  ) throws(ValidationError) -> Write.Entry {
    let (text, isPriority) = splitPriority(key)
    let path: Path
    do throws(ValidationError) {
      path = try Path(parsing: text)
    } catch {
      throw ValidationError(
        .invalidData, "the update path \"\(key)\" cannot be used: \(error.message)")
    }
    var reader = ValueReader(outerDepth: outerDepth + path.count, prefix: path)
    if isPriority {
      let scalar = try reader.priority(value)
      deferred.append(contentsOf: reader.deferred)
      return Write.Entry(path: path, action: .setPriority(scalar))
    }
    let node = try reader.node(value)
    if node.isEmpty { return Write.Entry(path: path, action: .remove) }
    if let number = node.wholeIncrement(reader.deferred, at: path) {
      return Write.Entry(path: path, action: .increment(number))
    }
    deferred.append(contentsOf: reader.deferred)
    return Write.Entry(path: path, action: .set(node))
  }

  /// Takes a last segment `.priority` off a path.
  private static func splitPriority(_ key: String) -> (String, Bool) {
    var rest = Substring(key)
    while rest.utf8.last == UInt8(ascii: "/") { rest.removeLast() }
    guard rest.hasSuffix(".priority") else { return (key, false) }
    let parent = rest.dropLast(".priority".count)
    guard parent.isEmpty || parent.utf8.last == UInt8(ascii: "/") else { return (key, false) }
    return (String(parent), true)
  }
}

extension PackedUpdate {
  /// `updateChildValues(_:)`; nil where only a draft can hold it (priorities and most server values) or report
  /// what is wrong with it.
  init?(updating values: [AnyHashable: Any], at path: Path) {
    self.init()
    for (key, value) in values {
      guard let key = key.base as? String, add(key, value, below: path) else { return nil }
    }
    guard isFinished(at: path) else { return nil }
  }

  init?(updating values: [String: Any], at path: Path) {
    self.init()
    for (key, value) in values where !add(key, value, below: path) { return nil }
    guard isFinished(at: path) else { return nil }
  }

  private mutating func add(_ key: String, _ value: Any, below path: Path) -> Bool {
    if key.hasSuffix(".priority") { return false }
    var reader = ValueReader(outerDepth: path.count)
    do throws(ValidationError) {
      let node = try reader.node(value)
      if reader.deferred.isEmpty {
        try set(key, node)
      } else if let number = node.wholeIncrement(reader.deferred) {
        try increment(key, by: number)
      } else {
        return false
      }
      return true
    } catch {
      return false
    }
  }

  private mutating func isFinished(at path: Path) -> Bool {
    do throws(ValidationError) {
      try finish(at: path)
      return true
    } catch {
      return false
    }
  }
}

extension Node {
  /// The number by which a value that is nothing but an increment adds; such a write is logged as its
  /// delta.
  fileprivate func wholeIncrement(_ deferred: [Draft.Deferred], at path: Path = .root) -> Number? {
    guard deferred.count == 1, isLeaf, priority == nil, !deferred[0].isPriority,
      deferred[0].path == path, case .increment(let number) = deferred[0].value
    else { return nil }
    return number
  }
}
