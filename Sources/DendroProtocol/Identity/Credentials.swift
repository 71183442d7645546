/// What a request says about who sends it. `CredentialPolicy` decides what to believe.
package struct Credentials: Hashable, Sendable {
  /// Of the header `Authorization: Bearer`, or of `access_token`.
  package var bearer: String?
  /// Of `auth`: an ID token or a secret.
  package var token: String?
  /// Of `auth_variable_override`: JSON.
  package var authOverride: String?

  package init(bearer: String? = nil, token: String? = nil, authOverride: String? = nil) {
    self.bearer = bearer
    self.token = token
    self.authOverride = authOverride
  }

  package init(_ target: RequestTarget, _ headers: HTTPHeaders) {
    let scheme = "bearer "
    let header = headers["authorization"].flatMap { text in
      text.lowercased().hasPrefix(scheme)
        ? String(text.dropFirst(scheme.count)).trimmingSpaces : nil
    }
    bearer = header ?? target["access_token"]
    token = target["auth"].flatMap { $0.isEmpty ? nil : $0 }
    authOverride = target["auth_variable_override"]
  }
}

extension String {
  fileprivate var trimmingSpaces: String {
    String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}
