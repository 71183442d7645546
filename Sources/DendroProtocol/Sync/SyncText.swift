import DendroTree

/// The messages of a client, and the values in those of a server.
enum SyncText {
  static func request(_ number: Int, _ action: String, _ body: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(body.count + 64)
    text += "{\"t\":\"d\",\"d\":{\"r\":".utf8
    text += "\(number)".utf8
    text += ",\"a\":\"".utf8
    text += action.utf8
    text += "\",\"b\":".utf8
    text += body
    text += "}}".utf8
    return text
  }

  /// A body with its path, which goes on.
  static func body(_ place: DataPlace) -> [UInt8] {
    var text = Array("{\"p\":".utf8)
    var path = place.path.description
    if place.isPriority { path += path == "/" ? ".priority" : "/.priority" }
    JSONText.append(string: path, to: &text)
    return text
  }

  /// - Parameter lsn: for a server that tells what has changed since this write of it.
  static func listen(
    _ target: SyncedTree.Target, _ tag: Int?, hash: String, since lsn: UInt64?
  ) -> [UInt8] {
    var text = query(target, tag)
    text += ",\"h\":".utf8
    JSONText.append(string: hash, to: &text)
    if let lsn { text += ",\"since\":\(lsn)".utf8 }
    return text + [UInt8(ascii: "}")]
  }

  static func stop(_ target: SyncedTree.Target, _ tag: Int?) -> [UInt8] {
    query(target, tag) + [UInt8(ascii: "}")]
  }

  static func read(_ target: SyncedTree.Target) -> [UInt8] {
    let query = target.parameters.showsAll ? "{}" : WireQuery.text(target.parameters)
    return body(DataPlace(target.path)) + Array(",\"q\":\(query)}".utf8)
  }

  private static func query(_ target: SyncedTree.Target, _ tag: Int?) -> [UInt8] {
    var text = body(DataPlace(target.path))
    if let tag { text += ",\"q\":\(WireQuery.text(target.parameters)),\"t\":\(tag)".utf8 }
    return text
  }

  // MARK: Values

  /// The place of a push; nil if it says none.
  static func place(_ body: JSONMembers) -> DataPlace? {
    guard let (path, isPriority) = try? WireLocation.path(body) else { return nil }
    return DataPlace(path, isPriority: isPriority)
  }

  /// The node that a server has at a place; nil if nothing can be so there.
  static func node(_ text: ArraySlice<UInt8>?, at place: DataPlace) -> Node? {
    guard
      let node = text?.withUnsafeBytes({
        try? JSONParser.parse($0, depth: place.isPriority ? 0 : place.path.count)
      })
    else { return nil }
    guard place.isPriority else { return node }
    return node.isEmpty || node.isLeaf && node.scalar?.isValidPriority == true ? node : nil
  }

  /// The entries of an update of a location; nil if it is none.
  ///
  /// - Complexity: O(n).
  static func entries(_ text: ArraySlice<UInt8>?, at path: Path) -> [PendingWrites.Entry]? {
    text?.withUnsafeBytes { try? JSONParser.parseEntries($0, depth: path.count) }?.map { entry in
      switch entry.action {
      case .set(let node): PendingWrites.Entry(DataPlace(entry.path), node)
      case .remove: PendingWrites.Entry(DataPlace(entry.path), .empty)
      // No server sends these.
      case .increment(let delta): PendingWrites.Entry(DataPlace(entry.path), Node(delta.scalar))
      case .setPriority(let priority):
        PendingWrites.Entry(
          DataPlace(entry.path, isPriority: true), priority.map { Node($0) } ?? .empty)
      }
    }
  }
}
