import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// Does what requests ask for.
final class RESTService: Sendable {
  let namespaces: any Namespaces
  let authorizer: any Authorizer
  let authenticator: Authenticator
  let settings: ServerSettings
  let backlogByteLimit: Int
  let sessionByteLimit: Int
  let sessions: WireSessions
  let webSockets: WebSocketService
  let polls: PollService
  let figures = ServerFigures()
  /// Nil if it is off.
  private let viewer: ViewerService?
  private let streams = Mutex<[ObjectIdentifier: WeakStream]>([:])
  private let isStopping = Atomic<Bool>(false)
  /// For work that takes longer than an answer may hold up the other connections of a thread.
  let workers = DispatchQueue(label: "dendro-serve", attributes: .concurrent)
  /// For tasks that wait without blocking a thread.
  let executor: WorkerExecutor

  private struct WeakStream: Sendable {
    weak var stream: EventStream?
  }

  init(_ namespaces: any Namespaces, _ options: DatabaseServerOptions) throws(DatabaseServerError) {
    self.namespaces = namespaces
    executor = WorkerExecutor(workers)
    authorizer = try Self.authorizer(options)
    authenticator = try Authenticator(options)
    settings = ServerSettings()
    backlogByteLimit = options.backlogByteLimit
    sessionByteLimit = options.sessionByteLimit
    webSockets = try WebSocketService(options, figures)
    polls = PollService(options, figures)
    let needsUsers =
      authorizer is AdministratorsAuthorizer || authorizer is UsersAuthorizer
      || authorizer is LockedAuthorizer
    sessions = WireSessions(
      options, needsUsers: needsUsers,
      canSignIn: options.secret != nil || options.tokens != nil || authenticator.believesAll)
    viewer =
      options.viewer ?? SocketAddress.isLoopback(options.host) ? ViewerService() : nil
  }

  /// Who decides if the options do not say it.
  private static func authorizer(
    _ options: DatabaseServerOptions
  ) throws(DatabaseServerError) -> any Authorizer {
    if let authorizer = options.authorizer { return authorizer }
    if options.secret != nil { return AdministratorsAuthorizer() }
    guard options.tokens == nil else {
      throw DatabaseServerError(
        "tokens say who a user is: say by an authorizer what users may do, or who administrators are by a secret"
      )
    }
    guard SocketAddress.isLoopback(options.host) else {
      throw DatabaseServerError(
        "\(options.host) may be reached by others: say by a secret, tokens or an authorizer who may do what"
      )
    }
    return OpenAuthorizer()
  }

  /// Which names and origins requests may have.
  func policy(_ options: DatabaseServerOptions) throws(DatabaseServerError) -> RequestPolicy {
    let name = machineName()
    // As others call the machine in a network without a server of names.
    let machine = [name, name + ".local"].filter { Authority($0).map { $0.port == nil } ?? false }
    do throws(RESTError) {
      return try RequestPolicy(
        isStrict: authenticator.believesAll || authorizer is OpenAuthorizer,
        hostNames: options.hostNames + machine, origins: options.origins)
    } catch {
      throw DatabaseServerError(error.text)
    }
  }

  /// - Parameter exchange: with its whole body. It gets its answer at once or later.
  func perform(_ exchange: Exchange) {
    guard !isStopping.load(ordering: .acquiring) else {
      return exchange.finish(RESTAnswer(RESTError(503, "The server is shutting down.")))
    }
    let request: RESTRequest
    let authentication: Authentication
    do throws(RESTError) {
      if let handshake = try Handshake(
        method: exchange.method, target: exchange.target, headers: exchange.headers)
      {
        return open(handshake, exchange)
      }
      if let request = try PollRequest(
        method: exchange.method, target: exchange.target, headers: exchange.headers)
      {
        return polls.perform(request, exchange, self)
      }
      if try performOwn(exchange) { return }
      request = try RESTRequest(
        method: exchange.method, target: exchange.target, headers: exchange.headers)
      if request.isForDatabase { note(request.namespace, exchange) }
      if request.method == .options { return exchange.finish(RESTAnswer(options: request)) }
      authentication = try authenticator.authentication(of: request.credentials)
    } catch {
      return exchange.finish(RESTAnswer(error))
    }
    let call = RESTCall(
      exchange: exchange, request: request, authentication: authentication, service: self)
    if case .status = request.resource { return call.answerStatus() }
    if let open = namespaces.open(request.namespace) { return call.perform(in: open) }
    workers.async { [self] in
      do {
        let makesNew = mayInspect(authentication.identity) && !request.isReading
        call.perform(in: try namespaces.namespace(request.namespace, makesNew: makesNew))
      } catch NamespaceError.unknown
        where namespaces.makesNamespaces && mayInspect(authentication.identity) && request.isReading
      {
        if let refusal = namespaces.refusal(ofMaking: request.namespace) {
          return call.refuse(RESTError(refusal))
        }
        exchange.finish(RESTAnswer(reading: .empty, request))
      } catch {
        call.perform(because: error)
      }
    }
  }

  /// The database with this name, which is opened if it is not, and made if the client may do so. A REST request that reads
  /// makes none: a page of a stranger can have a browser send it.
  ///
  /// Only administrators make databases if not everybody may do everything: others could make as many as there
  /// may be.
  func namespace(_ name: String?, for client: Identity) throws -> Namespace {
    try namespaces.namespace(name, makesNew: mayInspect(client))
  }

  /// Answers what is neither data nor settings: figures, and the viewer's page.
  ///
  /// - Returns: false for all other requests.
  private func performOwn(_ exchange: Exchange) throws(RESTError) -> Bool {
    let text = exchange.target
    guard
      text == "/" || text.hasPrefix("/?") || text.hasPrefix("/.metrics")
        || text.hasPrefix("/.viewer/")
    else { return false }
    let target = try RequestTarget(text)
    if target.path == "/.metrics" {
      guard exchange.method == "GET" || exchange.method == "HEAD" else {
        throw RESTError(405, "The figures are read with GET.")
      }
      let authentication = try authenticator.authentication(
        of: Credentials(target, exchange.headers))
      guard mayInspect(authentication.identity) else { throw .permissionDenied }
      exchange.finish(
        RESTAnswer(page: Array(metrics().utf8), type: "text/plain; version=0.0.4; charset=utf-8"))
      return true
    }
    guard let viewer, target.path == "/" || target.path.hasPrefix("/.viewer/") else { return false }
    ViewerCall(exchange: exchange, target: target, service: self, viewer: viewer).perform()
    return true
  }

  /// Whether a client may see the server's figures and the names of its databases, and make databases.
  func mayInspect(_ identity: Identity) -> Bool {
    identity.isAdministrator || authorizer is OpenAuthorizer
  }

  /// Notes for the log which database a request is for.
  func note(_ namespace: String?, _ exchange: Exchange) {
    exchange.namespace = namespaces.name(of: namespace)
  }

  private func open(_ handshake: Handshake, _ exchange: Exchange) {
    note(handshake.namespace, exchange)
    workers.async { [self] in
      do {
        // Who the client is shows only later.
        let namespace = try namespace(handshake.namespace, for: .anonymous)
        webSockets.open(handshake, exchange, namespace, self)
      } catch {
        exchange.finish(RESTAnswer(RESTError(error)))
      }
    }
  }

  // MARK: Sessions

  /// The polls of the client that has a session.
  func polls(ofSession id: String?, in namespace: Namespace) -> PollConnection? {
    guard let session = id.flatMap({ sessions[$0] }), session.namespace === namespace else {
      return nil
    }
    return session.connection as? PollConnection
  }

  // MARK: Streams

  /// - Returns: false if the server is stopping.
  func add(_ stream: EventStream) -> Bool {
    streams.withLock { streams in
      if isStopping.load(ordering: .acquiring) { return false }
      streams[ObjectIdentifier(stream)] = WeakStream(stream: stream)
      return true
    }
  }

  private var openStreams: [EventStream] {
    streams.withLock { streams in
      streams = streams.filter { $0.value.stream != nil }
      return streams.values.compactMap(\.stream)
    }
  }

  var streamCount: Int { openStreams.count }

  func keepStreamsAlive() { for stream in openStreams { stream.keepAlive() } }

  /// Ends what clients had by tokens that are no longer valid.
  func endExpired() {
    for stream in openStreams where authenticator.end(of: stream.access.authentication) != nil {
      stream.end(with: .authRevoked)
    }
    for session in sessions.all { session.endExpired() }
  }

  /// Tries the last writes of sessions again that were refused for lack of room.
  func retryLastWrites() {
    for case let journal? in namespaces.all.map(\.journal) where journal.refusedCount > 0 {
      workers.async { journal.retry() }
    }
  }

  /// Begins a new second of what clients may send.
  func refill() { for session in sessions.all { session.refill() } }

  /// Judges what clients listen to again.
  func reauthorize() {
    for stream in openStreams where !authorizer.admits(stream.access.request) {
      stream.end(with: .cancel(RESTError.permissionDenied.text))
    }
    for session in sessions.all { session.reauthorize() }
  }

  /// Refuses requests from now on, and ends the streams.
  func stop() {
    streams.withLock { _ in isStopping.store(true, ordering: .releasing) }
    for stream in openStreams { stream.end() }
    webSockets.end()
    polls.end()
  }
}

/// What `/.settings/` has, for as long as the server runs.
final class ServerSettings: Sendable {
  private let pages = Mutex<[String: String]>([:])
  static let names: Set<String> = [
    "rules", "defaultWriteSizeLimit", "strictTriggerValidation", "functionTriggers",
  ]

  subscript(_ namespace: String, _ name: String) -> String? {
    get { pages.withLock { $0["\(namespace)/\(name)"] } }
    set { pages.withLock { $0["\(namespace)/\(name)"] = newValue } }
  }
}
