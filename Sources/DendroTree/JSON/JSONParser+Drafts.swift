extension JSONParser {
  /// Parses the value of a set. It may have server values, at any depth.
  ///
  /// - Throws: ``JSONError``.
  package static func parseDraft(
    setting bytes: UnsafeRawBufferPointer, at path: Path
  ) throws(JSONError) -> Draft {
    var reader = reader(bytes, depth: path.count)
    let node = try document { () throws(JSONFailure) in try reader.document() ?? .empty }
    let deferred = reader.deferred.enumerated().filter { index, item in
      item.isStoodFor(by: Draft.Deferred.standIn(index), in: node, at: item.path)
    }.map(\.element)
    if node.priority == nil, let only = deferred.first, only.path.isRoot, !only.isPriority,
      case .increment(let delta) = only.value
    {
      return Draft(.increment(path, delta))
    }
    return Draft(.set(path, node), deferred: deferred)
  }

  /// Parses the object of an update as ``parseEntries(_:depth:)`` does. It may have server values.
  ///
  /// - Throws: ``JSONError``. Call ``Write/validate()`` to check whether the paths conflict.
  package static func parseDraft(
    updating bytes: UnsafeRawBufferPointer, at path: Path
  ) throws(JSONError) -> Draft {
    var reader = reader(bytes, depth: path.count)
    var entries = try document { () throws(JSONFailure) in try reader.entries() }
    guard !reader.deferred.isEmpty else { return Draft(.update(path, entries)) }
    var data: [Path: Int] = [:]
    var priorities: [Path: Int] = [:]
    for (index, entry) in entries.enumerated() {
      if entry.action.isPriority {
        priorities[entry.path] = index
      } else {
        data[entry.path] = index
      }
    }
    var deferred: [Draft.Deferred] = []
    for (index, item) in reader.deferred.enumerated() {
      let standIn = Draft.Deferred.standIn(index)
      if item.isPriority, let entry = priorities[item.path],
        case .setPriority(let priority) = entries[entry].action, priority == standIn
      {
        deferred.append(item)
        continue
      }
      let owner = (0...item.path.count).lazy.compactMap { data[item.path.prefix($0)] }.first
      guard let owner, case .set(let node) = entries[owner].action,
        item.isStoodFor(
          by: standIn, in: node, at: item.path.dropFirst(entries[owner].path.count))
      else { continue }
      if entries[owner].path == item.path, node.priority == nil, !item.isPriority,
        case .increment(let delta) = item.value
      {
        entries[owner].action = .increment(delta)
      } else {
        deferred.append(item)
      }
    }
    return Draft(.update(path, entries), deferred: deferred)
  }

  /// Parses a priority, which may be a server value.
  ///
  /// - Throws: ``JSONError``.
  package static func parseDraft(
    settingPriority bytes: UnsafeRawBufferPointer, at path: Path
  ) throws(JSONError) -> Draft {
    var reader = reader(bytes, depth: path.count)
    let priority = try document { () throws(JSONFailure) in
      let priority = try reader.priority()
      if try reader.scanner.peek() != nil {
        throw reader.scanner.failure("nothing may follow the priority")
      }
      return priority
    }
    return Draft(.setPriority(path, priority), deferred: reader.deferred)
  }

  private static func reader(_ bytes: UnsafeRawBufferPointer, depth: Int) -> JSONReader {
    JSONReader(
      JSONScanner(bytes: bytes), depth: depth, pieceBytes: Int.max, acceptsServerValues: true,
      yield: { _ in })
  }

  private static func document<R>(_ body: () throws(JSONFailure) -> R) throws(JSONError) -> R {
    do throws(JSONFailure) {
      return try body()
    } catch {
      guard case .text(let error) = error else { fatalError("no closure of the caller can throw") }
      throw error
    }
  }
}

extension Draft.Deferred {
  fileprivate func isStoodFor(by standIn: Scalar, in node: Node, at path: Path) -> Bool {
    let place = node.node(at: path)
    return (isPriority ? place.priority : place.scalar) == standIn
  }
}
