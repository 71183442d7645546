/// Decides who may read and write what, where no rules of the database do.
///
/// A server asks it before each reading and writing, and for administrators too.
///
/// ```swift
/// struct OwnersOnly: Authorizer {
///   func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict {
///     guard case .user(let id, _) = request.client else { return .deny }
///     return request.path.hasPrefix("/users/\(id)/") ? .allow : .deny
///   }
/// }
/// ```
public protocol Authorizer: Sendable {
  /// Decides a request.
  ///
  /// Any thread may call it, several at once, and never while a write is being admitted: it may take its time. A
  /// request that has looked at the data is decided again if other writes come between, and from the third time on these
  /// wait until it is decided.
  func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict

  /// Whether security rules that a database has take its place for everybody but administrators. By default false.
  var yieldsToRules: Bool { get }

  /// Whether clients without a credential may do everything. Then it is not asked about what they write, and the server
  /// looks from which pages requests come; see ``DatabaseServerOptions/origins``. By default false.
  var isOpen: Bool { get }
}

extension Authorizer {
  /// False.
  public var yieldsToRules: Bool { false }
  /// False.
  public var isOpen: Bool { false }
}

/// What an ``Authorizer`` says of a request.
public struct AuthorizationVerdict: Sendable, Hashable {
  /// What becomes of the request.
  public enum Decision: Sendable, Hashable {
    /// It is performed.
    case allow
    /// The client is told that it lacks the permission, and nothing else.
    case deny
    /// The query needs an index that the rules do not declare. The text says which.
    case noIndex(String)
    /// What is read or written is too large.
    case tooLarge
  }

  /// What becomes of the request.
  public var decision: Decision
  /// How it was decided, as text, where the request has asked for it.
  public var trace: String?

  /// Makes a verdict.
  public init(_ decision: Decision, trace: String? = nil) {
    self.decision = decision
    self.trace = trace
  }

  /// The request is performed.
  public static let allow = AuthorizationVerdict(.allow)
  /// The client lacks the permission.
  public static let deny = AuthorizationVerdict(.deny)
}
