public import Dendro
import DendroProtocol
public import DendroRules
import DendroTree

/// What a client asks for.
public struct AuthorizationRequest: Sendable {
  /// What is to be done.
  public enum Operation: Sendable {
    /// Reading the location, once or by listening.
    case read(RuleQuery)
    /// Writing: each location gets a new value, all at once.
    case write([Entry])
    /// Something beside the data.
    case manage(Management)
  }

  /// A location that is written.
  public struct Entry: Sendable, Hashable {
    private let location: RuleRequest.Location

    init(_ location: RuleRequest.Location) { self.location = location }

    /// The location, as `/a/b`.
    public var path: String { location.path.description }
    /// Whether only its priority is written.
    public var isPriority: Bool { location.isPriority }
  }

  /// What there is to do beside reading and writing data.
  public enum Management: Sendable, Hashable {
    /// Reading and writing the settings of a database, its rules among them.
    case settings
    /// Seeing the figures of the server and the names of its databases.
    case inspection
    /// Making a database under a new name.
    case creation
  }

  /// Who asks.
  public enum Client: Sendable, Hashable {
    /// No credential was given.
    case anonymous
    /// A user of the app, with the variable `auth` of security rules: its member `token` has the claims.
    case user(id: String, auth: RuleAuth)
    /// The server believes that the client may do everything.
    case administrator
  }

  /// The name of the database; empty for what concerns the whole server.
  public let namespace: String
  /// The location that is read, or below which all writes are; `/` for what concerns no data.
  public var path: String { location.description }
  /// What is to be done.
  public let operation: Operation
  /// Who asks.
  public let client: Client
  private let location: Path
  private let state: RequestState

  init(
    _ operation: Operation, at location: Path, in namespace: String, by identity: Identity,
    on state: RequestState
  ) {
    self.namespace = namespace
    self.location = location
    self.operation = operation
    client = Client(identity)
    self.state = state
  }

  /// The time that a server timestamp of the write becomes, in milliseconds since 1970.
  public var now: Int64 { state.time }

  /// What is at the location. All that a request shows is of one state. If it cannot be read from its file it is nothing, and the
  /// request is refused whatever the authorizer says.
  ///
  /// - Complexity: O(depth · log children). Data that is only in files is read.
  public var data: DataSnapshot { state.snapshot(at: location, isNew: false) }

  /// What would be at the location after the write, with its server values replaced; nil for what is no write.
  ///
  /// - Complexity: that of the write, once for each request.
  public var newData: DataSnapshot? {
    if case .write = operation { state.snapshot(at: location, isNew: true) } else { nil }
  }

  /// What is at another location.
  ///
  /// - Parameter path: as `/a/b`; nothing is at a path that is impossible.
  public func data(at path: String) -> DataSnapshot {
    state.snapshot(at: try? Path(parsing: path), isNew: false)
  }

  /// What would be at another location after the write; nil for what is no write.
  ///
  /// - Parameter path: as `/a/b`; nothing is at a path that is impossible.
  public func newData(at path: String) -> DataSnapshot? {
    guard case .write = operation else { return nil }
    return state.snapshot(at: try? Path(parsing: path), isNew: true)
  }
}

extension AuthorizationRequest.Client {
  init(_ identity: Identity) {
    self =
      switch identity {
      case .anonymous: .anonymous
      case .user(let id, _, let auth), .standIn(let id, _, let auth): .user(id: id, auth: auth)
      case .administrator: .administrator
      }
  }
}
