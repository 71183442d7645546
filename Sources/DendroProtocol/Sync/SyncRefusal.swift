import DendroTree

/// Why a server refuses something.
package struct SyncRefusal: Error, Hashable, Sendable {
  /// As the protocol has it: `permission_denied`.
  package let status: String
  package let text: String

  package init(status: String, text: String) {
    self.status = status
    self.text = text
  }

  static let permissionDenied = SyncRefusal(status: "permission_denied", text: "Permission denied")
  /// The server may have made the write.
  static let disconnected = SyncRefusal(
    status: "disconnect", text: "The connection was lost before the answer.")
  static let notUnderstood = SyncRefusal(
    status: "unavailable", text: "The server's answer is no value.")
  /// A later write of the client took the place of what a transaction had made.
  static let overwritten = SyncRefusal(
    status: "set", text: "A later write of this client has replaced what the transaction had made.")
  static let retriedTooOften = SyncRefusal(
    status: "maxretry", text: "Other writes came between each of the transaction's runs.")
  static let canceled = SyncRefusal(status: "write_canceled", text: "The write was taken back.")
}

/// By what a client signs in.
package enum SyncCredential: Hashable, Sendable {
  /// An ID token of a user.
  case user(token: String)
  /// A token of an administrator, or `owner` for an emulator, and perhaps as whom rules see it, as JSON.
  case administrator(token: String, override: String?)

  var action: String { if case .user = self { "auth" } else { "gauth" } }

  var body: [UInt8] {
    var body = Array("{\"cred\":".utf8)
    switch self {
    case .user(let token): JSONText.append(string: token, to: &body)
    case .administrator(let token, let override):
      JSONText.append(string: token, to: &body)
      if let override { body += ",\"authvar\":\(override)".utf8 }
    }
    return body + [UInt8(ascii: "}")]
  }
}
