import CDendroMicroHTTPD
import DendroPlatform
import DendroProtocol
import Dispatch
import Synchronization

/// One request and its answer.
///
/// libmicrohttpd calls `step` again and again: with the head, with each part of the body, and with nothing once
/// the body is complete. Then the request is performed. If that takes longer than the call, the connection is
/// suspended, and `finish` resumes it.
///
/// Unchecked: apart from `outcome`, which has a lock, one thread at a time uses the exchange. That is first the
/// connection's thread, then the one that performs the request, and after `finish` the connection's again.
final class Exchange: @unchecked Sendable {
  let target: String
  /// Whether the target is UTF-8, and so the same for all that read it.
  private let isTargetValid: Bool
  let context: HTTPContext
  private(set) var method = ""
  private(set) var headers = HTTPHeaders()
  private var framing = BodyFraming.none
  private(set) var body: [UInt8] = []
  /// Bytes of it that count in what all bodies may take.
  private var bodyByteCount = 0
  /// Why the body is not kept.
  private var refusal = RESTError.tooLarge
  private var phase = Phase.head
  /// Whether the request counts as one that waits for its answer.
  private var isPending = false
  /// Whether it counts as one whose answer is not sent to the end.
  private var isActive = false
  private var status = 0
  /// Whether a status of 500 or above answers what was asked, and is no failure.
  let asksForState = Atomic<Bool>(false)
  /// The name of the database that the request is for; nil if it is for none.
  var namespace: String?
  /// The use of the database by the request, until its answer is sent and nothing works on it any more.
  var lease: NamespaceLease?
  private let peer: HTTPConnection
  /// Who takes turns with others in what takes long.
  var turnClient: AnyObject { peer }
  /// Where the client is: the other end of the connection, or what a trusted proxy says. Nil if that is not known.
  private(set) var address: ClientAddress?
  /// The same for the log.
  private var client = ""
  private let time = systemMilliseconds()
  private let start = ContinuousClock.now
  private let outcome = Mutex(Outcome())
  /// The last write that the server shows, if answers say that.
  private let shownLSN = Mutex<(@Sendable () -> UInt64)?>(nil)

  private enum Phase {
    case head
    case body
    /// The body is over a limit; what comes is dropped.
    case excess
    case performing
    case answered
  }

  private struct Outcome: @unchecked Sendable {
    var answer: Answer?
    /// Whether the beginning of its body is made.
    var isPrepared = false
    /// What takes its place if it comes too late.
    var late: (answer: RESTAnswer, deadline: ContinuousClock.Instant)?
    /// The suspended connection.
    var connection: OpaquePointer?
  }

  /// What goes back.
  enum Answer: Sendable {
    case whole(RESTAnswer)
    case stream(RESTAnswer, EventStream)
    case custom(CustomAnswer)
  }

  /// An answer that libmicrohttpd sends by itself. It is freed at the end of the exchange, whether it was sent or not: the
  /// client may have left before.
  ///
  /// Unchecked: nothing of it changes.
  final class CustomAnswer: @unchecked Sendable {
    let status: Int
    let response: OpaquePointer
    /// What the answer leads to.
    private let upgrade: Unmanaged<PendingUpgrade>

    /// - Parameters:
    ///   - response: taken over.
    ///   - upgrade: retained by the caller, and released with the answer.
    init(status: Int, response: OpaquePointer, upgrade: Unmanaged<PendingUpgrade>) {
      self.status = status
      self.response = response
      self.upgrade = upgrade
    }

    deinit {
      MHD_destroy_response(response)
      upgrade.release()
    }
  }

  /// - Parameter target: as in the request line; nil if that is not UTF-8.
  init(_ target: String?, _ context: HTTPContext, _ peer: HTTPConnection) {
    self.peer = peer
    self.target = target ?? ""
    isTargetValid = target != nil
    self.context = context
  }

  // MARK: Steps

  func step(
    _ connection: OpaquePointer,
    _ line: HeadReader.Line,
    _ upload: UnsafePointer<CChar>?, _ uploadCount: UnsafeMutablePointer<Int>
  ) -> MHD_Result {
    switch phase {
    case .head:
      phase = .body
      method = String(cString: line.method)
      let head = HeadReader(line, targetByteCount: target.utf8.count, of: connection)
      headers = head.headers
      identify(connection)
      do throws(RESTError) {
        try check(head, version: String(cString: line.version))
        if context.trustedProxyHeader != nil, let address,
          !context.connections.lend(peer, to: address)
        {
          throw RESTError(503, "Too many requests of this address have no answer yet.")
        }
      } catch {
        return send(.whole(RESTAnswer(refusal: error)), connection)
      }
      if let error = refusalBeforeBody() {
        // libmicrohttpd closes the connection behind the answer, while the client is still sending.
        context.lingering.add(dendro_duplicate(dendro_connection_socket(connection)))
        return send(.whole(RESTAnswer(error)), connection)
      }
      if framing != .none { peer.beginBody() }
      return dendro_yes
    case .body where uploadCount.pointee > 0:
      let count = uploadCount.pointee
      uploadCount.pointee = 0
      peer.noteBody(count)
      do throws(RESTError) {
        try makeRoom(for: count)
      } catch {
        return drop(error)
      }
      if let upload {
        body.append(contentsOf: UnsafeRawBufferPointer(start: upload, count: count))
      }
      return dendro_yes
    case .body:
      phase = .performing
      peer.beginAnswer()
      // Before the request is accepted: a server that stops waits for the answers of those that were.
      isPending = true
      context.pendingCount.wrappingAdd(1, ordering: .sequentiallyConsistent)
      isActive = true
      context.activeCount.wrappingAdd(1, ordering: .relaxed)
      context.figures.noteReceived(body.count)
      context.perform(self)
      return answerOrWait(connection)
    case .excess:
      guard uploadCount.pointee == 0 else {
        peer.noteBody(uploadCount.pointee)
        uploadCount.pointee = 0
        return dendro_yes
      }
      return send(.whole(RESTAnswer(refusal)), connection)
    case .performing: return answerOrWait(connection)
    case .answered: return dendro_no
    }
  }

  /// Finds out where the client is. The last entry of a proxy's header field is its own; those before it may be the client's.
  private func identify(_ connection: OpaquePointer) {
    let end = dendro_client_address(connection)
    if let name = context.trustedProxyHeader,
      let entry = headers.values(name).last?.split(separator: ",").last?.trimmingSpaces,
      let told = ClientAddress(entry)
    {
      address = told
      client = String(entry)
    } else if let end {
      address = ClientAddress(end)
      if context.accessLog != nil { client = SocketAddress.text(of: end) ?? "" }
    }
  }

  /// Refuses what is refused before its body is read.
  private func check(_ head: HeadReader, version: String) throws(RESTError) {
    guard isTargetValid else { throw .badRequest("The target of the request is not UTF-8.") }
    guard head.isIntact, target.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
      throw .badRequest("The head of the request is malformed.")
    }
    framing = try BodyFraming(version: version, headers: headers)
    if framing != .none, headers["upgrade"] != nil {
      throw .badRequest("A request that changes the protocol has no body.")
    }
    try context.policy.check(method: method, target: target, version: version, headers: headers)
  }

  /// Refuses what needs no look at the body. A short one has room beside all others, and is read.
  private func refusalBeforeBody() -> RESTError? {
    switch framing {
    case .none: return nil
    case .length(let count) where count > context.bodyByteLimit: return .tooLarge
    case .length(let count) where count <= BodyBudget.freeByteCount: return nil
    case .length, .chunked: return context.refusal(self)
    }
  }

  /// Counts what the body takes with so many bytes more.
  private func makeRoom(for byteCount: Int) throws(RESTError) {
    guard byteCount <= context.bodyByteLimit - body.count else { throw .tooLarge }
    let added = body.count + byteCount - BodyBudget.freeByteCount - bodyByteCount
    guard added > 0 else { return }
    try context.bodies.take(added, for: address)
    bodyByteCount += added
  }

  /// Drops the body, also what is still to come of it.
  private func drop(_ error: RESTError) -> MHD_Result {
    freeBody()
    refusal = error
    phase = .excess
    return dendro_yes
  }

  private func freeBody() {
    body = []
    context.bodies.giveBack(bodyByteCount, of: address)
    bodyByteCount = 0
  }

  private func answerOrWait(_ connection: OpaquePointer) -> MHD_Result {
    let (answer, unprepared) = outcome.withLock { outcome -> (Answer?, RESTAnswer?) in
      var unprepared: RESTAnswer?
      if let answer = outcome.answer {
        guard !outcome.isPrepared, case .whole(var whole) = answer else { return (answer, nil) }
        outcome.isPrepared = true
        if whole.body.prepare(byteCount: Self.inlineByteCount) { return (.whole(whole), nil) }
        outcome.answer = nil
        unprepared = whole
      }
      MHD_suspend_connection(connection)
      outcome.connection = connection
      return (nil, unprepared)
    }
    if let unprepared {
      context.parts.async(for: peer) { [self] in
        var answer = unprepared
        _ = answer.body.prepare(byteCount: ResponseBody.wholeByteLimit)
        // It has the number of the last write already.
        finish(.whole(answer))
      }
    }
    return answer.map { send($0, connection) } ?? dendro_yes
  }

  /// Of an answer, so much is made on the thread of its connection, on which others wait.
  private static let inlineByteCount = 16 << 10

  /// Gives the request this answer once so much time has passed since its head came, unless it has another one by then.
  /// A stream may begin later.
  func giveUp(after limit: Duration, with answer: RESTAnswer) {
    let deadline = start + limit
    outcome.withLock { $0.late = (answer, deadline) }
    let (seconds, attoseconds) = (deadline - .now).components
    let wait = DispatchTimeInterval.nanoseconds(
      max(0, Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)))
    DispatchQueue.global().asyncAfter(deadline: .now() + wait) { [weak self] in
      self?.finish(answer)
    }
  }

  /// Gives the request its answer. Only the first call has an effect.
  func finish(_ answer: Answer) {
    outcome.withLock { outcome in
      guard outcome.answer == nil else { return }
      if case .whole = answer, let late = outcome.late, late.deadline <= .now {
        outcome.answer = .whole(late.answer)
      } else {
        outcome.answer = answer
      }
      if let connection = outcome.connection {
        outcome.connection = nil
        MHD_resume_connection(connection)
      }
    }
  }

  func finish(_ answer: RESTAnswer) {
    var answer = answer
    if answer.status < 400, let lsn = shownLSN.withLock({ $0 })?() {
      answer.headers.append("X-Dendro-LSN", "\(lsn)")
      answer.headers.append("Access-Control-Expose-Headers", "X-Dendro-LSN")
    }
    finish(.whole(answer))
  }

  /// Whether the request needs no more work: it has its answer, or its client has left.
  var isOver: Bool {
    outcome.withLock { outcome in
      // As long as there is none, the connection is suspended or about to be, and keeps its socket.
      outcome.answer != nil || peer.hasLeft
    }
  }

  /// Has the answer say the last write that the server shows, unless the request is refused.
  func tellLSN(_ shown: @escaping @Sendable () -> UInt64) { shownLSN.withLock { $0 = shown } }

  private func send(_ answer: Answer, _ connection: OpaquePointer) -> MHD_Result {
    phase = .answered
    peer.beginAnswer()
    freeBody()
    defer { noteAnswer() }
    let response: OpaquePointer?
    switch answer {
    case .whole(let answer):
      status = answer.status
      response = ResponseBody.response(answer, on: connection, context)
      Self.add(answer.headers, to: response)
    case .stream(let answer, let stream):
      status = answer.status
      response = stream.response(on: connection, context)
      Self.add(answer.headers, to: response)
    case .custom(let custom):
      status = custom.status
      return MHD_queue_response(connection, UInt32(status), custom.response)
    }
    guard let response else { return dendro_no }
    if framing == .chunked { MHD_add_response_header(response, "Connection", "close") }
    defer { MHD_destroy_response(response) }
    return MHD_queue_response(connection, UInt32(status), response)
  }

  private func noteAnswer() {
    guard isPending else { return }
    isPending = false
    context.pendingCount.wrappingSubtract(1, ordering: .sequentiallyConsistent)
  }

  /// Called once, when the answer was sent or the client has left.
  func complete() {
    noteAnswer()
    freeBody()
    if status == 0, peer.isGivenUp { status = 408 }
    context.connections.endAnswer(peer)
    if isActive {
      context.activeCount.wrappingSubtract(1, ordering: .relaxed)
    }
    if case .stream(_, let stream)? = outcome.withLock({ $0.answer }) { stream.close() }
    context.figures.noteAnswer(status, isState: asksForState.load(ordering: .relaxed))
    guard let log = context.accessLog else { return }
    log(
      AccessRecord(
        time: time, client: client, namespace: namespace, method: method,
        target: RequestTarget.text(of: target, withoutValuesOf: Self.isSecret), status: status,
        duration: ContinuousClock.now - start))
  }

  // MARK: Headers

  private static func add(_ headers: HTTPHeaders, to response: OpaquePointer?) {
    for field in headers.fields { MHD_add_response_header(response, field.name, field.value) }
    // No browser takes data for something else, whatever is in them.
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff")
  }

  /// Whether a parameter is a credential, names a session, or is a part of a message.
  private static func isSecret(_ name: String) -> Bool {
    ["auth", "access_token", "ac", "id", "pw", "s", "ls"].contains(name)
      || name.first == "d" && name.count > 1 && name.dropFirst().allSatisfy(\.isNumber)
  }
}

extension Substring {
  fileprivate var trimmingSpaces: Substring {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    guard let end = lastIndex(where: { !isSpace($0) }) else { return "" }
    return self[...end].drop(while: isSpace)
  }
}
