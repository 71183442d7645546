import CDendroWSLay
import Dendro
import DendroPlatform
import DendroProtocol
import Foundation
import Synchronization

/// The thread that has a client's connection: makes it, reads and writes it, and makes it again when it is lost.
final class SyncLoop: Sendable {
  enum Command: Sendable {
    /// Connects at once.
    case connect
    case disconnect
    /// Closes the connection, and makes another one after a while.
    case reconnect
    /// The same, after as long a while as there is.
    case reconnectLate
    /// Closes the connection, and makes one to this host.
    case redirect(String)
    case end
  }

  private let address: RemoteAddress
  private let trust: TrustedCertificates?
  private let limits: SyncLimits
  private let waiter: Waiter
  private let state: Mutex<State>

  private struct State {
    var isEnded = false
    /// Whether the present connection is to be closed.
    var isLineEnded = false
    /// Whether the next connection is to be made at once, or as late as possible.
    var isUrgent = false
    var isLate = false
    /// Which host the server has named for the next connection, and how often it has done so since a connection lasted.
    var host: String?
    var redirectCount = 0
    /// Since when the present connection is ready.
    var readySince: ContinuousClock.Instant?
  }

  init(_ address: RemoteAddress, trusting trust: TrustedCertificates?, limits: SyncLimits) {
    self.address = address
    self.trust = trust
    self.limits = limits
    waiter = Waiter()
    state = Mutex(State())
  }

  func start(_ client: SyncClient) {
    let thread = Thread { [self] in run(client) }
    thread.name = "dendro-sync"
    thread.start()
  }

  // MARK: From any thread

  func wake() { waiter.wake() }

  func obey(_ command: Command) {
    state.withLock { state in
      switch command {
      case .connect: state.isUrgent = true
      case .disconnect, .reconnect: state.isLineEnded = true
      case .reconnectLate:
        state.isLineEnded = true
        state.isLate = true
      case .redirect(let host):
        state.isLineEnded = true
        state.redirectCount += 1
        let isMeant = state.redirectCount <= limits.redirectCountMax
        state.host = isMeant ? host : nil
        if isMeant { state.isUrgent = true }
      case .end: state.isEnded = true
      }
    }
    wake()
  }

  /// The server has greeted.
  func noteReady() {
    state.withLock { $0.readySince = .now }
  }

  // MARK: The thread

  private func run(_ client: SyncClient) {
    var delay = ReconnectDelay()
    var next = ContinuousClock.now
    while true {
      let (isEnded, isUrgent) = state.withLock { state in
        defer { state.isUrgent = false }
        return (state.isEnded, state.isUrgent)
      }
      if isEnded { return }
      if isUrgent {
        delay.reset()
        next = .now
      }
      let mayConnect = client.reading(\.mayConnect)
      guard mayConnect, next <= .now else {
        // A network that has come back is tried at once.
        if waiter.wait(until: mayConnect ? next : nil) == .networkChanged { next = .now }
        continue
      }
      let lasted = connect(client)
      let isLate = state.withLock { state in
        defer { state.isLate = false }
        if let lasted, lasted >= ReconnectDelay.lastingSeconds { state.redirectCount = 0 }
        return state.isLate
      }
      delay.isAdministrator = client.reading(\.identity.isAdministrator)
      if isLate { delay.prolong() }
      next = .now + .seconds(delay.next(lasted: lasted, random: .random(in: 0...1)))
    }
  }

  /// Makes a connection, and serves it until it ends.
  ///
  /// - Returns: how many seconds it was ready; nil if it never was.
  private func connect(_ client: SyncClient) -> Double? {
    state.withLock { state in
      state.isLineEnded = false
      state.readySince = nil
    }
    let deadline = ContinuousClock.now + limits.connectTimeout
    let (host, session) = (
      state.withLock { $0.host }, client.reading { $0.session }
    )
    do throws(TransportError) {
      let destination = Destination(address, redirectedTo: host)
      let line = try WebSocketLine.open(
        destination, through: Proxy(for: destination), trusting: trust, lastSession: session,
        limits, waiter, until: deadline
      ) { [self] in isOver }
      guard let number = client.opened() else {
        line.close()
        return nil
      }
      let reason = serve(line, number, client, until: deadline)
      client.lost(number)
      if let reason { client.observer.log("the connection to the server is lost: \(reason)") }
    } catch {
      // Where a server has sent its client, there may be none any more.
      state.withLock { $0.host = nil }
      if !isOver { client.observer.log("the server cannot be reached: \(error)") }
    }
    return state.withLock { state in
      state.readySince.map { (ContinuousClock.now - $0) / .seconds(1) }
    }
  }

  private var isOver: Bool { state.withLock { $0.isEnded || $0.isLineEnded } }

  /// - Parameter deadline: by when the server has to have greeted.
  /// - Returns: why the connection was lost; nil if this side has ended it.
  private func serve(
    _ line: WebSocketLine, _ number: Int, _ client: SyncClient,
    until deadline: ContinuousClock.Instant
  ) -> TransportError? {
    var lastSent = ContinuousClock.now
    var lastAsked = lastSent
    while true {
      var next = deadline
      if isOver {
        line.close()
        return nil
      }
      let now = ContinuousClock.now
      let isReady = state.withLock { $0.readySince != nil }
      if !isReady, now > deadline { return .timedOut }
      if isReady, now - lastAsked >= limits.askInterval {
        lastAsked = now
        client.askLSN(over: number)
      }
      do throws(TransportError) {
        var messages = client.takeOutgoing(over: number)
        if messages.isEmpty, isReady, now - lastSent >= limits.keepAliveInterval {
          messages = [Array("0".utf8)]
        }
        if !messages.isEmpty { lastSent = now }
        try line.send(messages)
        let isMore = try line.receive { messages in
          client.received(messages, over: number)
          return !self.isOver
        }
        // What was received may have brought something to be sent.
        if isMore || client.reading({ $0.isOpen && !$0.outgoing.isEmpty }) { continue }
        if isReady {
          next = min(
            try line.checkSilence(), lastSent + limits.keepAliveInterval,
            lastAsked + limits.askInterval)
        }
      } catch {
        return error
      }
      waiter.wait(for: line.descriptor, writing: line.wantsToWrite, until: next)
    }
  }
}

/// Where a client connects to.
struct Destination: Sendable {
  let isSecure: Bool
  let host: String
  let port: Int
  let namespace: String?

  /// - Parameter authority: of the host that the server has named, perhaps with a port; nil for its own.
  init(_ address: RemoteAddress, redirectedTo authority: String?) {
    isSecure = address.isSecure
    namespace = address.namespace
    guard let authority, let mark = authority.lastIndex(of: ":"),
      let port = Int(authority[authority.index(after: mark)...]), (1...65535).contains(port)
    else {
      host = authority.map { $0.isEmpty ? address.host : $0 } ?? address.host
      port = address.port
      return
    }
    host = String(authority[..<mark])
    self.port = port
  }
}
