import DendroTree

/// The messages of a client, and the values in those of a server.
enum SyncText {
  static func request(_ number: Int, _ action: String, _ body: [UInt8]) -> [UInt8] {
    var text = Array("{\"t\":\"d\",\"d\":{\"r\":\(number),\"a\":\"\(action)\",\"b\":".utf8)
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

  static func listen(_ target: SyncedTree.Target, _ tag: Int?, hash: String) -> [UInt8] {
    var text = query(target, tag)
    text += ",\"h\":".utf8
    JSONText.append(string: hash, to: &text)
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

  static func node(_ text: ArraySlice<UInt8>?) -> Node? {
    text?.withUnsafeBytes { try? JSONParser.parse($0) }
  }

  /// The entries of an update, whose names may be paths.
  static func entries(_ members: JSONMembers) -> [PendingWrites.Entry]? {
    var entries: [PendingWrites.Entry] = []
    for name in members.names {
      let isPriority = name == ".priority" || name.hasSuffix("/.priority")
      guard let path = try? Path(parsing: isPriority ? String(name.dropLast(9)) : name),
        let node = node(members[name])
      else { return nil }
      entries.append(PendingWrites.Entry(DataPlace(path, isPriority: isPriority), node))
    }
    return entries
  }
}
