import CDendroMicroHTTPD
import DendroProtocol
import DendroTree
import Synchronization

/// The body of an answer that is a stream of events: a listen's receiver whose events wait until the client
/// reads them.
///
/// If too much waits, it is dropped, and once the client has read what is under way, the listen begins anew
/// with the whole value: so what one slow client keeps in memory is bounded.
final class EventStream: ListenReceiver {
  /// By what right the client listens.
  let access: ReadAccess
  private let form: JSONStyle.Form
  private let wantsIDs: Bool
  private let backlogByteLimit: Int
  /// What the client has already, if it resumes.
  private let resumption: (@Sendable (Node) -> ListenResumption?)?
  private let state = Mutex(State())

  fileprivate struct State: Sendable {
    var listen: Listen?
    var hub: ListenHub?
    /// Events that wait, the oldest first.
    var events = EventQueue()
    var byteCount = 0
    /// What is being sent, and how much of it was.
    var part: [UInt8] = []
    var offset = 0
    /// The rest of the event of which it is a part.
    var current: AnswerText?
    /// Whether the next part is made elsewhere, and nothing is sent meanwhile.
    var isMaking = false
    /// Whether events were dropped, and the listen has to begin anew.
    var isLagging = false
    /// Whether the listen was asked to begin anew.
    var isRestarting = false
    var hasBegun = false
    /// How many values are being made. The last of them comes before the events that wait, and the others not at all.
    var unmadeCount = 0
    /// No event follows those that wait.
    var isEnded = false
    /// The client has left.
    var isClosed = false
    var connection: SuspendedConnection?
    var wasActive = true
  }

  /// So much of an event is made on the thread of its connection, on which others wait.
  fileprivate static let inlineByteCount = 16 << 10
  private static let partByteCount = 64 << 10

  init(
    _ request: RESTRequest, _ access: ReadAccess, backlogByteLimit: Int,
    resumption: (@Sendable (Node) -> ListenResumption?)? = nil
  ) {
    self.access = access
    form = request.form
    wantsIDs = request.wantsEventIDs
    self.backlogByteLimit = backlogByteLimit
    self.resumption = resumption
  }

  /// Begins to listen.
  func listen(_ path: Path, _ query: QueryParameters?, _ hub: ListenHub) {
    let listen = Listen(path, query, self)
    let isClosed = state.withLock { state in
      // Otherwise the two would hold each other.
      if state.isClosed { return true }
      state.listen = listen
      state.hub = hub
      return false
    }
    if !isClosed { hub.register(listen) }
  }

  // MARK: Events

  var client: AnyObject { self }
  var address: ClientAddress? { access.address }

  /// What has changed since the client had a value is looked for in all of it.
  func takesLong(toBegin node: Node) -> Bool {
    resumption != nil && node.isBranch && state.withLock { !$0.hasBegun }
  }

  func prepare() {
    state.withLock { state in
      state.unmadeCount += 1
      state.isLagging = false
      state.events = EventQueue()
      state.byteCount = 0
    }
  }

  func giveUp() {
    state.withLock { state in
      state.unmadeCount -= 1
      state.resume()
    }
  }

  func begin(_ node: Node, lsn: UInt64) {
    let (isFirst, isObsolete) = state.withLock { state in
      if state.unmadeCount > 1 {
        state.unmadeCount -= 1
        return (false, true)
      }
      defer {
        state.hasBegun = true
        if state.unmadeCount == 0 { state.isLagging = false }
        state.isRestarting = false
      }
      return (!state.hasBegun, false)
    }
    if isObsolete { return }
    var change: PlaceChange? = .put(.root, node)
    if isFirst, let resumed = resumption?(node) {
      switch resumed {
      case .unchanged: change = nil
      case .changed(let difference): change = difference
      }
    }
    guard let change else {
      state.withLock { $0.unmadeCount = max(0, $0.unmadeCount - 1) }
      return wake()
    }
    append(StreamEvent.change(change).text(form, id: wantsIDs ? lsn : nil), isValue: true)
  }

  private struct Form: Hashable, Sendable {
    let form: JSONStyle.Form
    let hasID: Bool
  }

  func receive(_ update: ListenUpdate) {
    if state.withLock({ $0.isLagging || $0.isClosed }) { return }
    let text = update.text(Form(form: form, hasID: wantsIDs)) { change in
      StreamEvent.change(change).text(form, id: wantsIDs ? update.lsn : nil)
    }
    append(text)
  }

  func end() {
    state.withLock { state in
      state.isEnded = true
      state.resume()
    }
  }

  /// Sends a last event, and ends the stream. If too much waits, it is dropped: the client learns why nothing follows.
  func end(with event: StreamEvent) {
    let text = event.text(form)
    state.withLock { state in
      guard !state.isClosed, !state.isEnded else { return }
      if state.byteCount + text.byteCount > backlogByteLimit {
        state.events = EventQueue()
        state.byteCount = 0
      }
      state.events.append(text)
      state.byteCount += text.byteCount
      state.isEnded = true
      state.resume()
    }
  }

  /// Sends a `keep-alive` if nothing was sent since the last call.
  func keepAlive() {
    let isSilent = state.withLock { state in
      defer { state.wasActive = false }
      return !state.wasActive && state.hasBegun && !state.isEnded
    }
    if isSilent { append(StreamEvent.keepAlive.text(form)) }
  }

  /// Sends a `keep-alive` if the client has shut down writing: one that has left is noticed by what is sent to it, and keeps
  /// its place among the connections no longer.
  func lookForClient() {
    let isLeft = state.withLock { state in
      state.hasBegun && !state.isEnded && state.connection?.isLeft == true
    }
    if isLeft { append(StreamEvent.keepAlive.text(form)) }
  }

  /// - Parameter isValue: whether it is the value that was prepared for.
  private func append(_ text: AnswerText, isValue: Bool = false) {
    state.withLock { state in
      guard !state.isClosed, !state.isEnded else { return }
      state.wasActive = true
      let byteCount = text.byteCount
      if isValue, state.unmadeCount > 0 {
        state.unmadeCount -= 1
        if state.unmadeCount > 0 { return }
        state.events.prepend(text)
        state.byteCount += byteCount
      } else if !state.events.isEmpty, state.byteCount + byteCount > backlogByteLimit {
        state.events = EventQueue()
        state.byteCount = 0
        state.isLagging = true
      } else {
        state.events.append(text)
        state.byteCount += byteCount
      }
      state.resume()
    }
  }

  private func wake() { state.withLock { $0.resume() } }

  // MARK: Sending

  /// Makes libmicrohttpd's response. It holds the stream until it is destroyed.
  func response(on connection: OpaquePointer, _ context: HTTPContext) -> OpaquePointer? {
    state.withLock { $0.connection = SuspendedConnection(connection, context) }
    let reader = Unmanaged.passRetained(EventReader(self, context.parts))
    return MHD_create_response_from_callback(
      dendro_size_unknown, 1 << 10,
      { reader, _, buffer, capacity in
        guard let reader, let buffer else { return dendro_end_of_stream }
        let owner = Unmanaged<EventReader>.fromOpaque(reader).takeUnretainedValue()
        return owner.stream.read(
          UnsafeMutableRawBufferPointer(start: buffer, count: capacity), owner.parts)
      }, reader.toOpaque(),
      { reader in
        if let reader { Unmanaged<EventReader>.fromOpaque(reader).release() }
      })
  }

  /// - Returns: the number of bytes; 0 if none waits, and the connection is suspended then.
  private func read(_ buffer: UnsafeMutableRawBufferPointer, _ parts: FairQueue) -> Int {
    enum Next {
      case count(Int)
      case restart(ListenHub, Listen)
      case make(AnswerText)
    }
    let next = state.withLock { state -> Next in
      let count = state.fill(buffer)
      if count > 0 { return .count(count) }
      if !state.isMaking {
        if let unmade = state.current {
          state.current = nil
          state.isMaking = true
          state.connection?.suspend()
          return .make(unmade)
        }
        if state.isEnded { return .count(Int(dendro_end_of_stream)) }
        if state.isLagging, !state.isRestarting, let hub = state.hub, let listen = state.listen {
          state.isRestarting = true
          state.connection?.suspend()
          return .restart(hub, listen)
        }
      }
      state.connection?.suspend()
      return .count(0)
    }
    switch next {
    case .count(let count): return count
    case .restart(let hub, let listen): hub.restart(listen)
    case .make(let unmade): parts.async(for: self) { [self] in make(unmade) }
    }
    return 0
  }

  private func make(_ unmade: AnswerText) {
    var rest = unmade
    let part = rest.next(byteCount: Self.partByteCount)
    state.withLock { state in
      state.isMaking = false
      if !state.isClosed { state.take(part, rest) }
      state.connection?.resume()
    }
  }

  /// The client has left, or the stream is over.
  func close() {
    let (hub, listen) = state.withLock { state in
      state.isClosed = true
      state.isEnded = true
      state.events = EventQueue()
      state.current = nil
      state.part = []
      state.offset = 0
      state.connection = nil
      defer {
        state.hub = nil
        state.listen = nil
      }
      return (state.hub, state.listen)
    }
    if let hub, let listen { hub.unregister(listen) }
  }
}

extension EventStream.State {
  /// Copies what waits to be sent, as far as it is made.
  fileprivate mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    var written = 0
    while written < buffer.count {
      if offset == part.count {
        if isMaking || current != nil { break }
        // What waits comes behind the value that is being made.
        if unmadeCount > 0, !isEnded { break }
        guard var next = events.popFirst() else { break }
        byteCount -= next.byteCount
        take(next.next(byteCount: EventStream.inlineByteCount), next)
        continue
      }
      let count = min(buffer.count - written, part.count - offset)
      part.withUnsafeBytes { part in
        UnsafeMutableRawBufferPointer(rebasing: buffer[written...]).copyMemory(
          from: UnsafeRawBufferPointer(rebasing: part[offset..<offset + count]))
      }
      offset += count
      written += count
    }
    return written
  }

  fileprivate mutating func take(_ part: [UInt8], _ rest: AnswerText) {
    self.part = part
    offset = 0
    current = rest.isAtEnd ? nil : rest
  }

  /// Makes libmicrohttpd look at the connection again.
  fileprivate func resume() { connection?.resume() }
}

/// Who reads what.
struct ReadAccess: Sendable {
  let authentication: Authentication
  /// Nil if that is not known.
  let address: ClientAddress?
  let namespace: Namespace
  let path: Path
  /// Nil for the whole location.
  let query: QueryParameters?
}

/// First in, first out.
struct EventQueue: Sendable {
  private var events: [AnswerText] = []
  private var head = 0

  var isEmpty: Bool { head == events.count }

  mutating func append(_ event: AnswerText) { events.append(event) }

  mutating func prepend(_ event: AnswerText) { events.insert(event, at: head) }

  mutating func popFirst() -> AnswerText? {
    guard head < events.count else { return nil }
    let event = events[head]
    events[head] = AnswerText()
    head += 1
    if head == events.count || head >= 1024 {
      events.removeFirst(head)
      head = 0
    }
    return event
  }
}

/// What a client that resumes a stream has missed.
enum ListenResumption: Sendable {
  case unchanged
  case changed(PlaceChange)
}

/// A stream, and who makes the parts of its long events.
private final class EventReader {
  let stream: EventStream
  let parts: FairQueue

  init(_ stream: EventStream, _ parts: FairQueue) {
    self.stream = stream
    self.parts = parts
  }
}
