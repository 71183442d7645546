public import Dendro
import DendroProtocol
import Dispatch
import Synchronization

/// Serves an open database to clients of the Realtime Database: its SDKs over WebSockets or long polling, and REST with
/// event streams.
///
/// ```swift
/// let server = try await DatabaseServer.start(serving: database)
/// print("listening at port \(server.port)")
/// ```
///
/// Whatever else writes to the database is seen by the clients too. The server ends with `stop()` or when it is
/// released; the database stays open. Any thread may use it.
public final class DatabaseServer: Sendable {
  /// The port that it listens at, the same at every address.
  public let port: UInt16
  private let http: HTTPServer
  private let service: RESTService
  /// Twice in the interval: a stream is silent for between half of it and the whole when it gets its event.
  private let timer: RepeatingTimer
  private let tokenTimer: RepeatingTimer
  private let streamTimer: RepeatingTimer
  private let isStopped = Mutex(false)

  /// Begins to serve a database.
  ///
  /// At most one server serves a database at a time. It may listen at several addresses: ``DatabaseServerOptions/hosts``.
  ///
  /// - Throws: ``DatabaseServerError`` if an address cannot be used, or another server serves the database;
  ///   `DatabaseError` if the database is closed.
  public static func start(
    serving database: Database, options: DatabaseServerOptions = DatabaseServerOptions()
  ) async throws -> DatabaseServer {
    guard options.tokens?.keySetURL != nil else {
      return try start(SingleNamespace(database, named: options.namespace), options)
    }
    // The keys are fetched first, which may take seconds.
    return try await withCheckedThrowingContinuation { continuation in
      blocking.async {
        continuation.resume(
          with: Result {
            try start(SingleNamespace(database, named: options.namespace), options)
          })
      }
    }
  }

  /// Begins to serve several databases.
  package static func start(
    _ namespaces: any Namespaces, _ options: DatabaseServerOptions
  ) throws -> DatabaseServer {
    do {
      return try DatabaseServer(namespaces, options)
    } catch {
      try? namespaces.end()
      throw error
    }
  }

  /// Raises the limit of the process for open files as far as it may.
  package static func raiseDescriptorLimit() { DescriptorLimit.raise() }

  /// Whether only this machine reaches an address.
  package static func isLoopback(_ host: String) -> Bool { SocketAddress.isLoopback(host) }

  /// Whether what may be a file or a URL is a URL.
  package static func isURL(_ text: String) -> Bool { WebAddress.isMeant(by: text) }

  /// Whether a server may go by this name.
  package static func isHostName(_ text: String) -> Bool { RequestPolicy.hostName(text) != nil }

  /// Whether pages may come from there.
  package static func isOrigin(_ text: String) -> Bool { text == "*" || WebOrigin(text) != nil }

  /// Whether a header field may have this name.
  package static func isHeaderName(_ text: String) -> Bool { HTTPHeaders.isName(text) }

  /// Whether a namespace may have this name.
  package static func isNamespace(_ name: String) -> Bool { RESTRequest.isNamespace(name) }

  private init(_ namespaces: any Namespaces, _ options: DatabaseServerOptions) throws {
    let options = try options.fitting(.current)
    let service = try RESTService(namespaces, options)
    self.service = service
    let http = try HTTPServer(
      options, try service.policy(options), service.figures,
      refusal: { service.refusalBeforeBody($0) }, perform: { service.perform($0) })
    self.http = http
    port = http.port
    timer = RepeatingTimer(options.keepAliveInterval / 2) { service.keepStreamsAlive() }
    streamTimer = RepeatingTimer(.seconds(4)) { service.lookForStreamClients() }
    tokenTimer = RepeatingTimer(.seconds(1)) {
      http.tick()
      service.endExpired()
      service.authenticator.refreshKeys()
      service.refill()
      service.sessions.endOverdue()
      service.webSockets.tick()
      service.polls.tick()
      service.retryLastWrites()
      service.endLostSessions()
      service.refreshRules()
      service.workers.async { namespaces.closeIdle() }
      if namespaces.havePeers {
        Self.blocking.async { namespaces.openNew().forEach(service.prepare) }
      }
    }
    for namespace in namespaces.all { service.prepare(namespace) }
    Self.blocking.async {
      namespaces.writeLeftovers()
      for namespace in namespaces.all { service.prepare(namespace) }
    }
  }

  deinit { end() }

  // MARK: Rights

  /// Asks the authorizer about everything again that clients listen to. What it no longer allows ends: streams get
  /// `cancel`, and WebSockets are sent that the listen is over.
  ///
  /// To be called when its decisions have changed. Reads and writes are judged one by one anyway.
  public func reauthorize() { service.reauthorize() }

  /// Believes no ID token of a user any more that was issued up to now; see ``DatabaseServerOptions/tokens``. Clients
  /// that have signed in with one are signed out: streams get `auth_revoked`.
  ///
  /// It is kept in memory, for as long as the server runs.
  public func revokeTokens(ofUser id: String) {
    service.authenticator.revoke(user: id)
    service.endExpired()
  }

  /// Ends what clients had by tokens that have expired. It also happens by itself, once a second.
  package func endExpiredTokens() { service.endExpired() }

  /// Fetches the keys of tokens if they are no longer fresh. It also happens by itself, once a second.
  package func refreshKeys() { service.authenticator.refreshKeys() }

  /// Ends the serving: requests that were accepted get their answers, streams end, and connections are closed.
  /// The database stays open. Clients that read nothing of their answers for five seconds are waited for no longer,
  /// and no client for more than a minute.
  ///
  /// Stopping again does nothing.
  public func stop() async {
    await withCheckedContinuation { continuation in
      Self.blocking.async {
        self.end()
        continuation.resume()
      }
    }
  }

  /// For what may take seconds.
  private static let blocking = DispatchQueue(label: "dendro-server", attributes: .concurrent)

  private func end() {
    let isFirst = isStopped.withLock { isStopped in
      defer { isStopped = true }
      return !isStopped
    }
    guard isFirst else { return }
    timer.cancel()
    tokenTimer.cancel()
    streamTimer.cancel()
    service.authenticator.end()
    http.quiesce()
    service.stop()
    // Every write under way gets its answer from the engine, and every stream its end. Sessions are closed at once.
    let pause = DispatchSemaphore(value: 0)
    let sessionDeadline = ContinuousClock.now + .seconds(5)
    var isPatient = true
    while http.isBusy || service.webSockets.isBusy && ContinuousClock.now < sessionDeadline {
      _ = pause.wait(timeout: .now() + .milliseconds(2))
      if isPatient, ContinuousClock.now >= sessionDeadline {
        isPatient = false
        service.namespaces.stopWaiting()
      }
    }
    // Clients that read get their answers to the end.
    let end = ContinuousClock.now + .seconds(60)
    var deadline = ContinuousClock.now + .seconds(5)
    var sentPartCount = http.sentPartCount
    while http.isSending, ContinuousClock.now < min(deadline, end) {
      _ = pause.wait(timeout: .now() + .milliseconds(2))
      if http.sentPartCount != sentPartCount {
        sentPartCount = http.sentPartCount
        deadline = ContinuousClock.now + .seconds(5)
      }
    }
    http.stop()
    try? service.namespaces.end()
  }
}

/// Calls a block again and again.
///
/// Unchecked: Dispatch's timers may be used on any thread.
private final class RepeatingTimer: @unchecked Sendable {
  private let timer: any DispatchSourceTimer

  init(_ interval: Duration, _ body: @escaping @Sendable () -> Void) {
    let (seconds, attoseconds) = interval.components
    let nanoseconds = Int(max(1_000_000, seconds * 1_000_000_000 + attoseconds / 1_000_000_000))
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "dendro-timer"))
    timer.schedule(
      deadline: .now() + .nanoseconds(nanoseconds), repeating: .nanoseconds(nanoseconds))
    timer.setEventHandler(handler: body)
    timer.resume()
  }

  func cancel() { timer.cancel() }
}
