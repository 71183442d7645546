import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// Makes, on the server that leads, what the clients of other servers ask for.
final class PeerRequests: SharedRequestHandler {
  private let namespace: Namespace
  private let rights: Rights
  private let authenticator: Authenticator
  /// For what may wait.
  private let queue: DispatchQueue
  /// Sessions that have ended, of other servers. What they still ask for comes too late: their clients are elsewhere.
  private let ended = Mutex(EndedSessions())

  init(
    _ namespace: Namespace, _ rights: Rights, _ authenticator: Authenticator,
    on queue: DispatchQueue
  ) {
    self.namespace = namespace
    self.rights = rights
    self.authenticator = authenticator
    self.queue = queue
  }

  func make(
    _ request: SharedRequest, origin: WriteOrigin?, completion: @escaping SharedRequestCompletion
  ) {
    let end = { @Sendable (outcome: WriteOutcome) in
      completion(.answered(PassedOnAnswer.bytes(outcome)), nil)
    }
    switch PassedOnRequest(request.context) {
    case .endOfSession(let id)?:
      endSession(id) { error in completion(error.map { .failed($0) } ?? .made(nil), nil) }
    case .write(let passed)?:
      if let session = passed.session, ended.withLock({ $0.contains(session) }) {
        return end(.failed(RESTError(503, "The session has ended.")))
      }
      namespace.settings.refreshEarly()
      guard let numbered = passed.numbered else {
        return write(request.write, passed, origin) { outcome, lsn in
          Self.end(outcome, lsn, completion)
        }
      }
      make(request.write, passed, numbered, completion)
    case nil: end(.failed(RESTError(503, "The servers do not understand each other.")))
    }
  }

  /// Makes the last write of a session.
  func endSession(_ id: String, _ completion: @escaping @Sendable (EngineError?) -> Void) {
    ended.withLock { $0.insert(id) }
    guard let journal = namespace.journal else { return completion(nil) }
    journal.endKept(id, rights, authenticator, on: queue, completion)
  }

  fileprivate enum Outcome {
    case decided(WriteOutcome)
    case failed(EngineError)
  }

  private static func end(
    _ outcome: Outcome, _ lsn: LogSequenceNumber?, _ completion: SharedRequestCompletion
  ) {
    switch outcome {
    case .decided(.made): completion(.made(lsn), nil)
    case .decided(let outcome): completion(.answered(PassedOnAnswer.bytes(outcome)), nil)
    case .failed(let error): completion(.failed(error), nil)
    }
  }

  private func write(
    _ write: EncodedWrite, _ passed: PassedOnWrite, _ origin: WriteOrigin?,
    system: EncodedWrite? = nil,
    completion: @escaping @Sendable (Outcome, LogSequenceNumber?) -> Void
  ) {
    var requested: RequestedWrite?
    switch rights.admission(
      of: write, write.withView { Draft(decoding: $0) }.locations, at: passed.path,
      by: passed.identity, alsoReads: passed.alsoReads, wantsTrace: passed.wantsTrace)
    {
    case .refused(let verdict): return completion(.decided(.denied(verdict)), nil)
    case .free: break
    case .judged(let judge): requested = judge
    }
    let condition = passed.condition.map { ConditionJudge($0, at: passed.path, requested) }
    let named = EncodedWrite(write, system: system, origin: origin)
    let verdict = { @Sendable [requested] in requested?.verdict ?? .deny }
    let ended: Completion = { result in
      switch result {
      case .success(let lsn): completion(.decided(.made), lsn)
      case .failure(.denied):
        completion(.decided(condition?.isStale == true ? .stale : .denied(verdict())), nil)
      case .failure(let error): completion(.failed(error), nil)
      }
    }
    let judge: (any WriteJudge)? = condition ?? requested
    if let judge {
      namespace.engine.submit(named, judge: judge, completion: ended)
    } else {
      namespace.engine.submit(named, completion: ended)
    }
  }

  // MARK: Writes with numbers

  /// As `WireSession.write` with a number. A write that was passed on by two servers, since its client has sent it again, is
  /// made once.
  private func make(
    _ write: EncodedWrite, _ passed: PassedOnWrite, _ numbered: PassedOnWrite.Numbered,
    _ completion: @escaping SharedRequestCompletion
  ) {
    guard let results = namespace.results else {
      return self.write(write, passed, numbered.origin) { Self.end($0, $1, completion) }
    }
    switch results.begin(numbered.id, numbered.digest, lowest: numbered.lowest) {
    case .new: break
    case .running:
      let isRunning = results.wait(for: numbered.id) { outcome in
        Self.end(.decided(outcome), nil, completion)
      }
      // It has ended meanwhile.
      if !isRunning { make(write, passed, numbered, completion) }
      return
    case .answered(let outcome): return Self.end(.decided(outcome), nil, completion)
    case .other: return Self.end(.decided(.otherNumber), nil, completion)
    }
    let now = systemMilliseconds()
    let change = results.change(
      numbered.id, isMade: true, numbered.digest, from: numbered.address, now: now)
    self.write(write, passed, numbered.origin, system: change) { [namespace] outcome, lsn in
      let end = { @Sendable in
        results.end(numbered.id, outcome.asWriteOutcome(in: namespace))
        Self.end(outcome, lsn, completion)
      }
      guard case .decided(.denied(let verdict)) = outcome, passed.identity != .anonymous,
        !verdict.isForSize
      else { return end() }
      let change = results.change(
        numbered.id, isMade: false, numbered.digest, from: numbered.address, now: now)
      namespace.engine.submitSoon(EncodedWrite(nil, system: change)) { _ in end() }
    }
  }
}

/// The last sessions that have ended, by their ids.
private struct EndedSessions {
  private var ids: Set<String> = []
  /// In the order in which they have ended.
  private var order: [String] = []
  private static let countMax = 20_000

  func contains(_ id: String) -> Bool { ids.contains(id) }

  mutating func insert(_ id: String) {
    guard ids.insert(id).inserted else { return }
    order.append(id)
    guard order.count > Self.countMax else { return }
    for id in order.prefix(Self.countMax / 2) { ids.remove(id) }
    order.removeFirst(Self.countMax / 2)
  }
}

extension PeerRequests.Outcome {
  fileprivate func asWriteOutcome(in namespace: Namespace) -> WriteOutcome {
    switch self {
    case .decided(let outcome): outcome
    case .failed(let error): WriteOutcome(error, in: namespace)
    }
  }
}

extension Engine {
  /// Submits a write, on another thread if it has to wait.
  func submitSoon(_ write: EncodedWrite, _ completion: @escaping Completion) {
    if submitAtOnce(write, completion: completion) { return }
    Task { await submitSuspended(write, completion: completion) }
  }
}
