public import Dendro
import DendroEngine
package import DendroProtocol
package import DendroTree
import Synchronization

/// Decides who may read and write what.
///
/// A server asks it before each reading and writing; administrators are asked for as well. Any thread may call
/// it, several at once.
public protocol Authorizer: Sendable {
  /// Whether the request is allowed.
  func allows(_ request: AuthorizationRequest) -> Bool
}

/// A reading or writing that a client asks for.
public struct AuthorizationRequest: Sendable {
  /// What is to be done.
  public enum Operation: Sendable {
    /// Reading the location, once or by listening.
    case read
    /// Writing the location, or locations below it.
    case write
  }

  /// Who asks.
  public enum Client: Sendable {
    /// No credential was given.
    case anonymous
    /// A user of the app; the claims of the token are JSON.
    case user(id: String, claims: String)
    /// The server believes that the client may do everything.
    case administrator
  }

  /// The location, as `/a/b`.
  public let path: String
  /// What is to be done.
  public let operation: Operation
  /// Who asks.
  public let client: Client
  /// Whether only some of the children are read.
  public let isQuery: Bool

  private let current: @Sendable () -> DataSnapshot
  private let next: (@Sendable () -> DataSnapshot)?
  /// Whether `data` or `newData` was asked for and could not be read.
  private let unreadable: Unreadable

  private final class Unreadable: Sendable { let value = Atomic(false) }

  /// What is at the location now. If that cannot be read from its file, nothing, and the request is refused
  /// whatever the authorizer says; so it is with `newData`.
  public var data: DataSnapshot { current() }
  /// What would be at the location after the write; nil for a reading. Server values that need the moment of
  /// the write show as they would be now.
  public var newData: DataSnapshot? { next?() }

  var isUnreadable: Bool { unreadable.value.load(ordering: .relaxed) }

  package init(
    _ operation: Operation, at path: Path, by identity: Identity, query: QueryParameters? = nil,
    draft: Draft? = nil, in database: Database
  ) {
    self.path = path.description
    self.operation = operation
    client =
      switch identity {
      case .anonymous: .anonymous
      case .user(let id, let claims): .user(id: id, claims: claims)
      case .administrator: .administrator
      }
    isQuery = query.map { !$0.showsAll } ?? false
    let unreadable = Unreadable()
    self.unreadable = unreadable
    @Sendable func snapshot(_ draft: Draft?) -> DataSnapshot {
      let (snapshot, isRead) = database.snapshot(at: path, after: draft)
      if !isRead { unreadable.value.store(true, ordering: .relaxed) }
      return snapshot
    }
    current = { snapshot(nil) }
    next = draft.map { draft -> @Sendable () -> DataSnapshot in
      return { snapshot(draft) }
    }
  }
}

extension Authorizer {
  /// Whether the request is allowed, and was not decided on data that could not be read.
  func admits(_ request: AuthorizationRequest) -> Bool {
    allows(request) && !request.isUnreadable
  }
}

/// Allows everything to everybody: for development on one machine.
public struct OpenAuthorizer: Authorizer {
  /// Makes one.
  public init() {}
  /// True.
  public func allows(_ request: AuthorizationRequest) -> Bool { true }
}

/// Allows nothing to anybody.
public struct LockedAuthorizer: Authorizer {
  /// Makes one.
  public init() {}
  /// False.
  public func allows(_ request: AuthorizationRequest) -> Bool { false }
}

/// Allows everything to administrators, and nothing to others.
public struct AdministratorsAuthorizer: Authorizer {
  /// Makes one.
  public init() {}
  /// Whether the client is an administrator.
  public func allows(_ request: AuthorizationRequest) -> Bool {
    if case .administrator = request.client { true } else { false }
  }
}

/// Allows everything to administrators and to users who have signed in, and nothing to others.
public struct UsersAuthorizer: Authorizer {
  /// Makes one.
  public init() {}
  /// Whether the client is an administrator or a user.
  public func allows(_ request: AuthorizationRequest) -> Bool {
    if case .anonymous = request.client { false } else { true }
  }
}
