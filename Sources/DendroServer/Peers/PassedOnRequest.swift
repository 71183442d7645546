import DendroProtocol
import DendroTree

/// What a client has asked of a server that does not lead, beside the write itself, for the one that does.
enum PassedOnRequest: Sendable {
  case write(PassedOnWrite)
  /// The client of a session has left: what it has registered is to be written.
  case endOfSession(String)
}

/// What a write needs to be judged and made.
struct PassedOnWrite: Sendable {
  /// Who asks. The server that has the client has verified its credentials.
  var identity: Identity
  /// Below which all of the write is.
  var path: Path
  /// That of the client; nil if it has none.
  var session: String?
  /// Whether the client learns what is at the path.
  var alsoReads = false
  /// Whether the answer says how the rules decided.
  var wantsTrace = false
  var condition: Condition?
  /// Nil if the client has given the write no number.
  var numbered: Numbered?

  /// What has to be at the path.
  struct Condition: Hashable, Sendable {
    var kind: Kind
    /// Whether it is about the priority alone.
    var isPriority: Bool
    var value: String
  }

  enum Kind: String, Sendable {
    case hash
    case etag
  }

  /// As `WriteNumber`, of a user.
  struct Numbered: Sendable {
    var id: WriteResults.ID
    /// As the client calls itself.
    var client: String
    var lowest: Int
    var digest: String
    /// Of the client.
    var address: String
  }
}

// MARK: As bytes

extension PassedOnRequest {
  /// The request as servers of this release read it.
  var bytes: [UInt8] {
    var fields = PassedOnFields()
    switch self {
    case .endOfSession(let id): fields["end"] = id
    case .write(let write):
      for (name, text) in Registrant(write.identity).texts { fields[name] = text }
      fields["path"] = "\(write.path)"
      fields["session"] = write.session
      if write.alsoReads { fields["reads"] = "" }
      if write.wantsTrace { fields["trace"] = "" }
      if let condition = write.condition {
        fields[condition.kind.rawValue] = condition.value
        if condition.isPriority { fields["priority"] = "" }
      }
      if let numbered = write.numbered {
        fields["number"] = "\(numbered.id.number)"
        fields["lowest"] = "\(numbered.lowest)"
        fields["user"] = numbered.id.opening.user.string
        fields["client"] = numbered.client
        fields["incarnation"] = numbered.id.opening.incarnation.string
        fields["digest"] = numbered.digest
        fields["address"] = numbered.address
      }
    }
    return fields.bytes
  }

  /// - Returns: nil unless the bytes are a request.
  init?(_ bytes: [UInt8]) {
    guard let fields = PassedOnFields(bytes) else { return nil }
    if let id = fields["end"] {
      guard (try? Key(id)) != nil else { return nil }
      self = .endOfSession(id)
      return
    }
    guard let registrant = Registrant(text: { fields[$0] }),
      let path = fields["path"].flatMap({ try? Path(parsing: $0) })
    else { return nil }
    var passed = PassedOnWrite(identity: registrant.identity, path: path)
    passed.session = fields["session"]
    passed.alsoReads = fields["reads"] != nil
    passed.wantsTrace = fields["trace"] != nil
    for kind in [PassedOnWrite.Kind.hash, .etag] {
      guard let value = fields[kind.rawValue] else { continue }
      passed.condition = PassedOnWrite.Condition(
        kind: kind, isPriority: fields["priority"] != nil, value: value)
    }
    if fields["number"] != nil {
      guard let numbered = PassedOnWrite.Numbered(fields) else { return nil }
      passed.numbered = numbered
    }
    self = .write(passed)
  }
}

extension PassedOnWrite.Numbered {
  fileprivate init?(_ fields: PassedOnFields) {
    func key(_ name: String) -> Key? { fields[name].flatMap { try? Key($0) } }
    guard let number = fields["number"].flatMap({ Int($0) }), number > 0,
      let lowest = fields["lowest"].flatMap({ Int($0) }), lowest > 0, let user = key("user"),
      let client = fields["client"], let clientKey = try? Key(client),
      client.utf8.count <= WriteOrigin.clientByteCountMax, let incarnation = key("incarnation"),
      let digest = fields["digest"], let address = fields["address"]
    else { return nil }
    let opening = WriteResults.Opening(user: user, client: clientKey, incarnation: incarnation)
    self.init(
      id: WriteResults.ID(opening: opening, number: number), client: client, lowest: lowest,
      digest: digest, address: address)
  }

  /// Under which the write is in the log.
  var origin: WriteOrigin { WriteOrigin(client: Array(client.utf8), number: UInt64(id.number)) }
}
