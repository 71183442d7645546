import DendroTree

/// Whose rights the writes of a client have.
package enum SyncUser: Hashable, Sendable {
  /// No user is signed in.
  case anonymous
  /// A user is about to sign in, whose id is not known yet.
  case unknown
  /// A user, by the id.
  case user(String)
  case administrator

  /// As it is kept.
  package var text: String {
    switch self {
    case .anonymous: "anonymous"
    case .unknown: "unknown"
    case .user(let id): "user \(id)"
    case .administrator: "administrator"
    }
  }

  /// - Returns: nil for what is no text of a user.
  package init?(text: String) {
    switch text {
    case "anonymous": self = .anonymous
    case "unknown": self = .unknown
    case "administrator": self = .administrator
    default:
      let start = "user "
      guard text.startsLiterally(with: start) else { return nil }
      self = .user(String(decoding: text.utf8.dropFirst(start.utf8.count), as: UTF8.self))
    }
  }
}
