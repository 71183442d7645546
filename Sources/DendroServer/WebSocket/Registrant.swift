import DendroProtocol
import DendroRules
import DendroTree

/// Who has registered what is to be written when a client leaves. It stays the same when the client's token expires or the
/// client signs out.
struct Registrant: Hashable, Sendable {
  let identity: Identity
  /// What vouches for the identity; see `Authenticator.believes`.
  let voucher: String?

  init(_ authentication: Authentication) {
    identity = authentication.identity
    voucher = authentication.voucher
  }

  /// One for whom nothing has to vouch any more.
  init(_ identity: Identity) {
    self.identity = identity
    voucher = nil
  }
}

// MARK: As texts

extension Registrant {
  /// The registrant as texts with names.
  var texts: [(name: String, text: String)] {
    var texts: [(name: String, text: String)] =
      switch identity {
      case .anonymous: [("kind", "anonymous")]
      case .administrator: [("kind", "administrator")]
      case .user(let id, let claims, _): [("kind", "user"), ("id", id), ("claims", claims)]
      case .standIn(_, let variable, _): [("kind", "standIn"), ("claims", variable)]
      }
    if let voucher { texts.append(("voucher", voucher)) }
    return texts
  }

  /// - Parameter text: that with a name; nil if there is none.
  /// - Returns: nil if the texts are no registrant.
  init?(text: (String) -> String?) {
    let identity: Identity?
    switch (text("kind"), text("claims")) {
    case ("anonymous", _): identity = .anonymous
    case ("administrator", _): identity = .administrator
    case ("user", let claims?): identity = .user(id: text("id") ?? "", claims: claims)
    case ("standIn", let variable?): identity = .standIn(variable)
    default: identity = nil
    }
    guard let identity else { return nil }
    self.identity = identity
    voucher = text("voucher")
  }

  // MARK: In the second root

  /// The texts as children of a node.
  var node: Node {
    var node = Node.empty
    for (name, text) in texts {
      guard let key = try? Key(name) else { preconditionFailure("\(name) is a key") }
      node.graft(Node(.string(text)), at: Path.root.appending(key))
    }
    return node
  }

  /// - Returns: nil for what is none.
  init?(_ node: Node) {
    self.init { name in
      guard let key = try? Key(name), case .string(let text)? = node.child(key).scalar else {
        return nil
      }
      return text
    }
  }
}

/// Who has registered which operations of a session: the first registrant all of them, but for the places of others.
struct Registrants: Sendable {
  /// In the order in which they came.
  private(set) var all: [Registrant] = []
  /// Their numbers, where it is not the first one.
  private var places = PlaceNumbers()

  /// The most that a session may have.
  static let countMax = 64

  /// The number of a registrant, which is added if it is new; nil if there are too many.
  mutating func number(of registrant: Registrant) -> Int? {
    if let number = all.firstIndex(of: registrant) { return number }
    guard all.count < Self.countMax else { return nil }
    all.append(registrant)
    return all.count - 1
  }

  /// Notes what a registrant has registered.
  mutating func note(_ draft: Draft, _ number: Int) {
    if number == 0, places.isEmpty { return }
    // What was at such a place or below is replaced.
    for location in draft.locations { places.set(location.path, to: number, ground: 0) }
  }

  /// The number of who has registered what is at a location.
  func number(at path: Path) -> Int { places[path] ?? 0 }

  /// Who has registered what is at a location; nil if that is not known.
  subscript(_ path: Path) -> Registrant? {
    let number = number(at: path)
    return all.indices.contains(number) ? all[number] : nil
  }
}
