// The authorizers that are ready to use. None of them looks at the data.

/// Allows everything to everybody, but for settings, which are the administrators': for development on one machine.
public struct OpenAuthorizer: Authorizer {
  /// Makes one.
  public init() {}
  /// True: rules take its place.
  public var yieldsToRules: Bool { true }
  /// True.
  public var isOpen: Bool { true }
  /// Allows it, unless somebody other than an administrator asks for settings.
  public func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict {
    if case .manage(.settings) = request.operation { return request.client.ifAdministrator }
    return .allow
  }
}

/// Allows nothing to anybody, administrators included.
public struct LockedAuthorizer: Authorizer {
  /// Makes one.
  public init() {}
  /// Denies it.
  public func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict { .deny }
}

/// Allows everything to administrators, and nothing to others.
public struct AdministratorsAuthorizer: Authorizer {
  /// Makes one.
  public init() {}
  /// True: rules take its place.
  public var yieldsToRules: Bool { true }
  /// Allows it to an administrator.
  public func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict {
    request.client.ifAdministrator
  }
}

/// Allows everything to administrators, reading and writing to users who have signed in, and nothing to others.
public struct UsersAuthorizer: Authorizer {
  /// Makes one.
  public init() {}
  /// True: rules take its place.
  public var yieldsToRules: Bool { true }
  /// Allows it to an administrator, and to a user who reads or writes.
  public func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict {
    if case .manage = request.operation { return request.client.ifAdministrator }
    if case .anonymous = request.client { return .deny }
    return .allow
  }
}

extension AuthorizationRequest.Client {
  fileprivate var ifAdministrator: AuthorizationVerdict {
    if case .administrator = self { .allow } else { .deny }
  }
}
