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
  /// Rules for all databases; nil if each has its own.
  let commonRules: (any RuleSource)?
  let authenticator: Authenticator
  let backlogByteLimit: Int
  let sessionByteLimit: Int
  let readLimit: ReadLimit
  let sessions: WireSessions
  let webSockets: WebSocketService
  let polls: PollService
  /// In seconds.
  private let verdictInterval: Int
  let figures = ServerFigures()
  /// Nil if it is off.
  private let viewer: ViewerService?
  private let streams = Mutex<[ObjectIdentifier: WeakStream]>([:])
  private let isStopping = Atomic<Bool>(false)
  private let rulesTick = Atomic<Int>(0)
  /// For work that takes longer than an answer may hold up the other connections of a thread.
  let workers = DispatchQueue(label: "dendro-serve", attributes: .concurrent)
  /// For tasks that wait without blocking a thread.
  let executor: WorkerExecutor

  private struct WeakStream: Sendable {
    weak var stream: EventStream?
  }

  init(_ namespaces: any Namespaces, _ options: DatabaseServerOptions) throws(DatabaseServerError) {
    self.namespaces = namespaces
    commonRules = try Self.commonRules(options)
    executor = WorkerExecutor(workers)
    authorizer = try Self.authorizer(options)
    var known = options
    known.trustsUnsignedTokens = options.trustsUnsignedTokens ?? options.isLoopback
    authenticator = try Authenticator(known)
    backlogByteLimit = options.backlogByteLimit
    sessionByteLimit = options.sessionByteLimit
    readLimit = ReadLimit(byteCount: options.readByteLimit)
    webSockets = try WebSocketService(options, figures)
    polls = PollService(options, figures)
    verdictInterval = options.verdictInterval
    sessions = WireSessions(
      options,
      canSignIn: options.secret != nil || options.tokens != nil || authenticator.believesAll)
    viewer =
      options.viewer ?? options.isLoopback ? ViewerService() : nil
  }

  private static func commonRules(
    _ options: DatabaseServerOptions
  ) throws(DatabaseServerError) -> (any RuleSource)? {
    switch (options.rules, options.rulesFile) {
    case (nil, nil): return nil
    case (let rules?, nil): return GivenRules(rules)
    case (nil, let path?): return RulesFile(path, options.report)
    default: throw DatabaseServerError("rules come from a program or from a file, not from both")
    }
  }

  /// Who decides if the options do not say it.
  private static func authorizer(
    _ options: DatabaseServerOptions
  ) throws(DatabaseServerError) -> any Authorizer {
    let hasRules = options.rules != nil || options.rulesFile != nil
    if let authorizer = options.authorizer { return authorizer }
    if options.secret != nil { return AdministratorsAuthorizer() }
    if hasRules, options.tokens != nil || !options.isLoopback {
      return AdministratorsAuthorizer()
    }
    guard options.tokens == nil else {
      throw DatabaseServerError(
        "tokens say who a user is: say by rules or an authorizer what users may do, or who administrators are by a secret"
      )
    }
    if let host = options.hosts.first(where: { !SocketAddress.isLoopback($0) }) {
      throw DatabaseServerError(
        "\(host) may be reached by others: say by a secret, rules or an authorizer who may do what"
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
        isStrict: authenticator.believesAll || (authorizer.isOpen && commonRules == nil),
        isSecure: options.tls != nil, hostNames: options.hostNames + machine,
        origins: options.origins)
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
    if let timeout = request.timeout {
      exchange.giveUp(
        after: timeout,
        with: RESTAnswer(
          .badRequest("The data could not be read in the time of timeout."), to: request))
    }
    let call = RESTCall(
      exchange: exchange, request: request, authentication: authentication, service: self)
    switch request.resource {
    case .status: return call.answerStatus()
    case .databases: return call.answerDatabases()
    case .data, .priority, .settings: break
    }
    if let open = namespaces.open(request.namespace), open.namespace.isPrepared {
      exchange.lease = open
      return call.perform(in: open.namespace)
    }
    workers.async { [self] in
      do {
        guard let lease = try lease(for: call) else { return call.readNothing() }
        exchange.lease = lease
        prepare(lease.namespace)
        call.perform(in: lease.namespace)
      } catch {
        call.perform(because: error)
      }
    }
  }

  /// The database that a request is for; nil if there is none and the request, which reads, needs none.
  private func lease(for call: RESTCall) throws -> NamespaceLease? {
    let name = call.request.namespace
    let mayCreate = mayCreate(call.identity)
    guard call.request.isReading || call.request.wantsStream else {
      return try namespaces.namespace(name, makesNew: mayCreate)
    }
    do {
      return try namespaces.namespace(name, makesNew: false)
    } catch NamespaceError.unknown where namespaces.makesNamespaces && mayCreate {
      guard call.request.wantsStream, call.mayReadNothing else { return nil }
      return try namespaces.namespace(name, makesNew: true)
    }
  }

  /// The database with this name, which is opened if it is not, and made if the client may do so. A single reading by
  /// REST makes none: a page of a stranger can have a browser send it.
  ///
  /// Only administrators make databases if not everybody may do everything: others could make as many as there
  /// may be.
  func namespace(_ name: String?, for client: Identity) throws -> NamespaceLease {
    let lease = try namespaces.namespace(name, makesNew: mayCreate(client))
    prepare(lease.namespace)
    return lease
  }

  /// Does what comes before the first client of a database. It may wait for the disk.
  func prepare(_ namespace: Namespace) {
    namespace.prepare(rights(in: namespace), authenticator, on: workers)
  }

  /// Who may do what in a database.
  func rights(in namespace: Namespace) -> Rights {
    Rights(authorizer: authorizer, namespace: namespace, common: commonRules)
  }

  /// Answers what is neither data nor settings: figures, who leads, and the viewer's page.
  ///
  /// - Returns: false for all other requests.
  private func performOwn(_ exchange: Exchange) throws(RESTError) -> Bool {
    let text = exchange.target
    guard
      text == "/" || text.hasPrefix("/?") || text.hasPrefix("/.metrics")
        || text.hasPrefix("/.viewer/") || text.hasPrefix(LeaderCall.path)
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
    if target.path == LeaderCall.path {
      try LeaderCall(exchange, target, self).perform()
      return true
    }
    guard let viewer, target.path == "/" || target.path.hasPrefix("/.viewer/") else { return false }
    ViewerCall(exchange: exchange, target: target, service: self, viewer: viewer).perform()
    return true
  }

  /// Whether a client may see the server's figures and the names of its databases.
  func mayInspect(_ identity: Identity) -> Bool { authorizer.allows(.inspection, identity) }

  /// Whether a client may make databases.
  func mayCreate(_ identity: Identity) -> Bool { authorizer.allows(.creation, identity) }

  /// Notes for the log which database a request is for.
  func note(_ namespace: String?, _ exchange: Exchange) {
    exchange.namespace = namespaces.name(of: namespace)
  }

  private func open(_ handshake: Handshake, _ exchange: Exchange) {
    note(handshake.namespace, exchange)
    workers.async { [self] in
      do {
        // Who the client is shows only later.
        let lease = try namespace(handshake.namespace, for: .anonymous)
        webSockets.open(handshake, exchange, lease, self)
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

  /// Notices streams whose clients have left. Called every few seconds.
  func lookForStreamClients() { for stream in openStreams { stream.lookForClient() } }

  /// Ends what clients had by tokens that are no longer valid.
  func endExpired() {
    for stream in openStreams where authenticator.end(of: stream.access.authentication) != nil {
      stream.end(with: .authRevoked)
    }
    for session in sessions.all { session.endExpired() }
  }

  /// Tries the last writes of sessions again that were refused for lack of room.
  func retryLastWrites() {
    for namespace in namespaces.all where (namespace.journal?.refusedCount ?? 0) > 0 {
      guard let lease = namespaces.open(namespace.name) else { continue }
      workers.async { lease.namespace.journal?.retry() }
    }
  }

  /// Writes what sessions had registered that have ended without it, where this server leads: those of other servers that are
  /// gone, and its own that ended while it did not lead. And ends the sessions of this server that another one took for gone.
  /// Called once a second.
  func endLostSessions() {
    for namespace in namespaces.all where namespace.isShared {
      guard namespace.isPrepared else {
        // Clients of other servers may come, though none does here.
        if let lease = namespaces.open(namespace.name) {
          workers.async { [self] in prepare(lease.namespace) }
        }
        continue
      }
      namespace.engine.sharedLog?.tick()
      namespace.unanswered.giveUpOverdue()
      tellEnds(in: namespace)
      let begins = namespace.takeBeginning()
      guard let journal = namespace.journal, !journal.isEmpty,
        namespace.engine.isLeading,
        let lease = namespaces.open(namespace.name)
      else { continue }
      workers.async { [self] in
        let namespace = lease.namespace
        journal.writeLeftovers(rights(in: namespace), authenticator, on: workers) { id in
          namespace.isOwn(session: id)
            ? begins && sessions[id] == nil : namespace.hasEnded(serverOf: id)
        }
      }
    }
    for session in sessions.all where session.namespace.isShared {
      session.stopWaitingForWrites()
      if session.hasEndedElsewhere { session.close() }
    }
  }

  /// Tells the server that leads which sessions have ended, where it could not be told before.
  private func tellEnds(in namespace: Namespace) {
    guard let journal = namespace.journal else { return }
    if namespace.passesOn, journal.takeWithheld() {
      for id in journal.keptSessions where namespace.isOwn(session: id) && sessions[id] == nil {
        journal.noteUntold(id)
      }
    }
    let untold = journal.takeUntold()
    if untold.isEmpty { return }
    workers.async { for id in untold { namespace.endElsewhere(session: id) } }
  }

  /// Begins a new second of what clients may send.
  func refill() { for session in sessions.all { session.refill() } }

  /// Judges what clients listen to again.
  ///
  /// - Parameter namespace: nil for all of them.
  func reauthorize(_ namespace: Namespace? = nil) {
    for stream in openStreams where namespace.map({ $0 === stream.access.namespace }) ?? true {
      if let error = refusal(of: stream.access) { stream.end(with: .cancel(error.text)) }
    }
    for session in sessions.all where namespace.map({ $0 === session.namespace }) ?? true {
      session.reauthorize()
    }
  }

  /// Why a stream is not allowed any more; nil if it is.
  func refusal(of access: ReadAccess) -> RESTError? {
    let verdict = rights(in: access.namespace).verdict(
      reading: access.path, access.query, by: access.authentication.identity,
      on: access.namespace.engine.pin())
    return RESTError(reading: verdict)
  }

  /// Looks for rules that have changed, and for data that the verdicts of listens may have read. Called once a second.
  func refreshRules() {
    if commonRules?.refresh() == true { reauthorize() }
    for namespace in namespaces.all where namespace.settings.refresh() { reauthorize(namespace) }
    let tick = rulesTick.wrappingAdd(1, ordering: .relaxed).newValue
    guard tick.isMultiple(of: verdictInterval) else { return }
    // A rule may look at the time.
    let isMinute = tick.isMultiple(of: 60)
    for namespace in namespaces.all where rights(in: namespace).rules != nil {
      guard namespace.takeChange() || isMinute else { continue }
      workers.async { [self] in reauthorize(namespace) }
    }
  }
  /// Refuses requests from now on, and ends the streams.
  func stop() {
    streams.withLock { _ in isStopping.store(true, ordering: .releasing) }
    for stream in openStreams { stream.end() }
    webSockets.end()
    polls.end()
  }
}
