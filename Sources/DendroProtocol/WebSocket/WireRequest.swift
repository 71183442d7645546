package import DendroTree

/// One message of a client.
package enum WireMessage: Sendable {
  case ping
  case request(WireRequest)
  /// The client has found a WebSocket good, and changes over to it from polling.
  case acknowledgement
  /// The client sends nothing more on this transport.
  case endOfTransmission
  /// What needs no answer.
  case other
  /// Not what clients send; the connection is closed.
  case malformed

  package init(_ message: [UInt8]) {
    var envelope = WireEnvelope()
    guard envelope.read(message) else {
      self = .malformed
      return
    }
    switch envelope.type {
    case UInt8(ascii: "c"):
      switch envelope.kind {
      case UInt8(ascii: "p"): self = .ping
      case UInt8(ascii: "a"): self = .acknowledgement
      case UInt8(ascii: "n"): self = .endOfTransmission
      default: self = .other
      }
    case UInt8(ascii: "d"):
      guard let number = envelope.number else {
        self = .malformed
        return
      }
      if case .none = envelope.action {
        self = .malformed
        return
      }
      self = .request(WireRequest(number: number, envelope.action, envelope.body))
    default: self = .malformed
    }
  }
}

/// A request of a client, which gets one answer.
package struct WireRequest: Sendable {
  package let number: Int64
  package let action: Result<WireAction, RESTError>

  init(number: Int64, _ name: WireEnvelope.Action, _ body: JSONMembers?) {
    self.number = number
    action = Result { () throws(RESTError) in try WireAction(name, body) }
  }
}

/// What a request asks for.
package enum WireAction: Sendable {
  case none
  /// The hash is that of what the client has. `since` names a write after which that was right: 0 if the client knows none, nil
  /// if it does not ask for `lsn` in the answer.
  case listen(WireLocation, hash: String, since: UInt64?)
  case unlisten(WireLocation)
  case get(WireLocation)
  /// Asks for the number of the last write. The pushes of that write come before the answer.
  case lsn
  /// With a condition: only if that is so. The draft keeps the rules that `Write.validate()` checks, as those of all actions.
  case write(Draft, at: Path, if: WriteCondition?)
  /// Once, however often the client sends it. The digest tells it from other writes.
  case numberedWrite(Draft, at: Path, if: WriteCondition?, WriteNumber, digest: String)
  case onDisconnect(Draft, at: Path)
  case cancelOnDisconnect(Path)
  case signIn(Credentials)
  case signOut

  /// Whether it is about a place in the database, and not only about the client.
  package var isForPlace: Bool {
    switch self {
    case .none, .lsn, .signIn, .signOut: false
    case .listen, .unlisten, .get, .write, .numberedWrite, .onDisconnect, .cancelOnDisconnect: true
    }
  }

  /// Whether it is done although the client has left.
  package var outlivesClient: Bool {
    switch self {
    case .write, .numberedWrite, .onDisconnect, .cancelOnDisconnect, .signIn, .signOut: true
    case .none, .listen, .unlisten, .get, .lsn: false
    }
  }

  /// Whether its answer shows data.
  package var isRead: Bool {
    switch self {
    case .listen, .get: true
    default: false
    }
  }

  /// - Throws: `RESTError` with what is wrong.
  init(_ name: WireEnvelope.Action, _ body: JSONMembers?) throws(RESTError) {
    // The most frequent one first.
    if case .letter(UInt8(ascii: "p")) = name {
      guard let body else { throw .noBody }
      self = try Self.write("p", body)
    } else {
      try self.init(name: name.text, body)
    }
  }

  private init(name: String, _ body: JSONMembers?) throws(RESTError) {
    switch name {
    case "p", "m", "o", "om":
      guard let body else { throw .noBody }
      self = try Self.write(name, body)
    case "s", "appcheck", "unappeck", "unappcheck": self = .none
    case "unauth": self = .signOut
    case "lsn": self = .lsn
    default:
      guard let body else { throw .noBody }
      switch name {
      case "q", "l":
        self = .listen(
          try WireLocation(body), hash: body.string("h") ?? "", since: try Self.since(body))
      case "n", "u": self = .unlisten(try WireLocation(body))
      case "g": self = .get(try WireLocation(body))
      case "oc": self = .cancelOnDisconnect(try WireLocation.path(body).path)
      case "auth": self = .signIn(Credentials(token: try Self.credential(body)))
      case "gauth":
        let override = body["authvar"].map { String(decoding: $0, as: UTF8.self) }
        self = .signIn(
          Credentials(
            bearer: try Self.credential(body),
            authOverride: body.bool("noauth") == true ? "null" : override))
      default: throw .badRequest("Unknown action \(RESTRequest.shortened(name))")
      }
    }
  }

  private static func since(_ body: JSONMembers) throws(RESTError) -> UInt64? {
    guard body["since"] != nil else { return nil }
    guard let since = body.integer("since").flatMap({ UInt64(exactly: $0) }) else {
      throw .badRequest("Invalid since: it is no number of a write")
    }
    return since
  }

  private static func credential(_ body: JSONMembers) throws(RESTError) -> String {
    guard let credential = body.string("cred") else { throw .badToken }
    return credential
  }

  private static func write(_ name: String, _ body: JSONMembers) throws(RESTError) -> WireAction {
    let (path, isPriority) = try WireLocation.path(body)
    let isUpdate = name == "m" || name == "om"
    guard let data = body["d"], !(isPriority && isUpdate) else {
      throw .badRequest("Invalid request: no data")
    }
    let draft: Draft
    do throws(JSONError) {
      let result = data.withUnsafeBytes { bytes in
        Result { () throws(JSONError) in
          if isPriority { return try JSONParser.parseDraft(settingPriority: bytes, at: path) }
          return isUpdate
            ? try JSONParser.parseDraft(updating: bytes, at: path)
            : try JSONParser.parseDraft(setting: bytes, at: path)
        }
      }
      draft = try result.get()
    } catch {
      throw .badRequest("Invalid data; \(error.message)")
    }
    do throws(ValidationError) {
      try draft.write.validate()
    } catch {
      throw .badRequest("Invalid data; \(error.message)")
    }
    if name == "o" || name == "om" { return .onDisconnect(draft, at: path) }
    let hash = isUpdate ? nil : body.string("h")
    if !isUpdate, hash == nil, body["h"] != nil {
      throw .badRequest("Invalid hash: it is no string")
    }
    let condition = hash.map { WriteCondition(hash: $0, isPriority: isPriority) }
    if body["n"] != nil {
      guard let members = body.object("n") else { throw .badRequest("Invalid number of a write") }
      return .numberedWrite(
        draft, at: path, if: condition, try WriteNumber(members),
        digest: WriteNumber.digest(name, body))
    }
    return .write(draft, at: path, if: condition)
  }
}

/// What has to be so for a write to be made.
package struct WriteCondition: Sendable {
  /// Of what is there.
  package let hash: String
  /// Whether it is that of the priority alone.
  package let isPriority: Bool
}

/// What a listen or a get is about.
package struct WireLocation: Sendable {
  package let path: Path
  /// Nil for the whole location.
  package let query: QueryParameters?
  /// The client's number of the query.
  package let tag: Int64?
  /// What the query says, as the client's JSON has it; nil if there is none, or one for the whole location without a tag.
  package let queryText: String?
  /// Whether only the children are of interest, and not what is below them: for the data viewer.
  package let isShallow: Bool

  /// All of a location.
  package init(_ path: Path) {
    self.path = path
    query = nil
    tag = nil
    queryText = nil
    isShallow = false
  }

  init(_ body: JSONMembers) throws(RESTError) {
    let (path, isPriority) = try Self.path(body)
    guard !isPriority else { throw .badRequest("Invalid path: Invalid token in path") }
    self.path = path
    let query = try body.object("q").map { object throws(RESTError) in
      try WireQuery.parameters(object)
    }
    self.query = query.flatMap { $0.showsAll ? nil : $0 }
    tag = body.integer("t")
    isShallow = body.bool("shallow") == true
    queryText = self.query == nil && tag == nil ? nil : body.object("q").map(WireQuery.text)
  }

  /// About the bytes that a listen there takes.
  package var byteCount: Int {
    // Of the query there is the text, and what it says.
    path.keys.reduce(512 + 3 * (queryText?.utf8.count ?? 0)) { $0 + 32 + $1.orderedByteCount }
  }

  static func path(_ body: JSONMembers) throws(RESTError) -> (path: Path, isPriority: Bool) {
    // Nearly all paths stand in the message as they are, and end otherwise than `.priority`.
    let plain = body.withPlainString("p") { text in
      text.last == UInt8(ascii: "y") ? nil : try? Path(utf8: text)
    }
    if let path = plain.flatMap(\.self), path.count <= Limits.depth { return (path, false) }
    guard let text = body.string("p") else { throw .badRequest("Invalid path: no path") }
    let pathOfPriority = text.pathOfPriority
    guard let path = try? Path(parsing: pathOfPriority ?? text), path.count <= Limits.depth
    else { throw .badRequest("Invalid path: Invalid token in path") }
    return (path, pathOfPriority != nil)
  }
}

extension WireLocation: Hashable {
  package static func == (a: WireLocation, b: WireLocation) -> Bool {
    a.path == b.path && a.query == b.query && a.tag == b.tag && a.isShallow == b.isShallow
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(path)
    hasher.combine(query)
    hasher.combine(tag)
  }
}

extension RESTError {
  fileprivate static let noBody = RESTError.badRequest("Invalid request: no body")
}
