import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// What other servers have passed on to this one, which leads, in one epoch.
///
/// The node's thread reads rows and begins them; what they hold is admitted to the engine on other threads, which may wait,
/// for each server one row after the other.
final class Requests: Sendable {
  let epoch: Epoch
  private let engine: Engine
  /// What makes what clients ask for; and whether there ever was one.
  private let handler: @Sendable () -> ((any SharedRequestHandler)?, wasThere: Bool)
  /// Called when there is something for `step`.
  let changed: @Sendable () -> Void
  private let queue = DispatchQueue(label: "dendro-requests", attributes: .concurrent)
  private let group = DispatchGroup()
  let state = Mutex(State())
  private let begun = ContinuousClock.now
  /// How long what clients ask for waits for this server to take clients.
  private static let handlerDelay = Duration.seconds(10)
  private static let takesNone = "the server that leads takes no clients"

  struct State {
    /// The last number of each opening of a server that the engine has got in this epoch.
    var lastNumbers: [[UInt8]: UInt64] = [:]
    /// The openings of which a row is in hand.
    var inHand: Set<[UInt8]> = []
    /// Rows of which the engine has got all.
    var done: [Request] = []
    var answers: [Answer] = []
    /// The lines of servers that follow, by their openings.
    var lines: [[UInt8]: FollowerLine] = [:]
    /// When there were some rows, or a server that may have left some has opened its line.
    var lastTime: ContinuousClock.Instant?
    /// How many other servers there are.
    var followerCount = 1
    /// Nothing more is given to the engine.
    var isEnded = false
  }

  struct Answer: Sendable {
    let client: [UInt8]
    let number: UInt64
    let answer: ForwardedAnswer
    /// The last write that the engine had then.
    let lsn: LogSequenceNumber
  }

  /// Whether a write was refused while it was being submitted.
  private final class Inside: Sendable {
    private let state = Mutex((isInside: true, isRefused: false))

    func noteRefusal() { state.withLock { if $0.isInside { $0.isRefused = true } } }

    func end() -> Bool {
      state.withLock { state in
        state.isInside = false
        return state.isRefused
      }
    }
  }

  init(
    _ epoch: Epoch, _ engine: Engine,
    handler: @escaping @Sendable () -> ((any SharedRequestHandler)?, wasThere: Bool),
    changed: @escaping @Sendable () -> Void
  ) {
    self.epoch = epoch
    self.engine = engine
    self.handler = handler
    self.changed = changed
  }

  func setFollowerCount(_ count: Int) { state.withLock { $0.followerCount = count } }

  /// How long the thread sleeps before it looks again.
  func pause(_ longest: Duration) -> Duration {
    let (needsTable, lastTime) = state.withLock { state in
      (state.followerCount > state.lines.count, state.lastTime)
    }
    let isBusy = lastTime.map { .now - $0 < .seconds(1) } ?? false
    guard needsTable || isBusy else { return longest }
    return min(longest, isBusy ? .milliseconds(2) : .milliseconds(20))
  }

  /// Begins what there is, and says what has become of what was begun.
  ///
  /// - Parameter isDue: whether the thread has something else to do, for which this ends early.
  func step(_ session: ClusterSession, isDue: () -> Bool) throws(ClusterError) {
    while !isDue(), let row = state.withLock({ $0.done.first }) {
      try session.removeRequest(row, epoch: epoch.number)
      state.withLock { _ = $0.done.removeFirst() }
    }
    while !isDue() {
      let answers = state.withLock { $0.answers.prefix(Self.answerCountMax) }
      if answers.isEmpty { break }
      try session.answer(answers, epoch: epoch.number)
      state.withLock { $0.answers.removeFirst(answers.count) }
    }
    // Those whose answers are not fetched bring no more.
    guard state.withLock({ $0.followerCount > 0 && $0.answers.count < Self.waitingAnswerCountMax })
    else { return }
    let rows = try session.requests(epoch: epoch.number)
    if !rows.isEmpty { state.withLock { $0.lastTime = .now } }
    var byteCount = 0
    for row in rows where byteCount < Self.byteCountMax && !isDue() {
      let begins = state.withLock { state in
        // Those that were done since the look.
        let isDone = state.done.contains { $0.client == row.client && $0.number == row.number }
        return !state.isEnded && !isDone && state.inHand.insert(row.client).inserted
      }
      guard begins else { continue }
      let body: [UInt8]?
      do throws(ClusterError) {
        body = try session.body(of: row, epoch: epoch.number)
      } catch {
        release(row.client)
        throw error
      }
      guard let body else {
        release(row.client)
        continue
      }
      byteCount += body.count
      queue.async(group: group) { [self] in work(row, body) }
    }
  }

  /// Lets the next one of a server be made.
  private func release(_ client: [UInt8]) {
    state.withLock { _ = $0.inHand.remove(client) }
    begin { [self] in takeUpLine(of: client) }
  }

  /// Of one statement.
  private static let answerCountMax = 64
  /// So many wait before no more is begun.
  private static let waitingAnswerCountMax = 2_000
  /// Of what is begun at once.
  private static let byteCountMax = 8 << 20

  /// Gives the engine nothing more, and waits until it gets nothing more. It has to refuse what it gets by then.
  func end() {
    state.withLock { $0.isEnded = true }
    closeLines()
    group.wait()
  }

  /// Makes what this server had passed on, or would have, before it began to lead.
  ///
  /// - Parameters:
  ///   - own: what the engine has not got yet.
  ///   - more: what has come since; called until there is nothing.
  func makeOwn(_ own: [ForwardedWrite], more: @escaping @Sendable () -> [ForwardedWrite]) {
    queue.async(group: group) { [self] in
      var own = own
      repeat {
        for write in own {
          if state.withLock({ $0.isEnded }) {
            write.end(.failed(.unavailable("this server leads no more")), nil)
          } else if let (write, completion) = write.asWrite {
            engine.submit(write, completion: completion)
          } else {
            switch write.content {
            case .write: break
            case .result(let result, let input):
              make(result, of: input, write.origin) { write.end($0, nil) }
            case .request(let request): make(request, write.origin) { write.end($0, $1) }
            }
          }
        }
        own = more()
      } while !own.isEmpty
    }
  }

  private func make(
    _ request: SharedRequest, _ origin: WriteOrigin,
    _ completion: @escaping SharedRequestCompletion
  ) {
    guard let handler = handler().0 else {
      return completion(.failed(.unavailable(Self.takesNone)), nil)
    }
    handler.make(request, origin: origin, completion: completion)
  }

  /// Makes what a transaction makes, if its input is still there.
  private func make(
    _ result: EncodedWrite, of input: TransactionInput, _ origin: WriteOrigin,
    _ completion: @escaping @Sendable (SharedRequestOutcome) -> Void
  ) {
    let judge = TransactionInputJudge(input, at: result.path)
    engine.submit(EncodedWrite(result, system: nil, origin: origin), judge: judge) { result in
      switch result {
      case .success(let lsn): completion(.made(lsn))
      case .failure(.denied): completion(.stale)
      case .failure(let error): completion(.failed(error))
      }
    }
  }

  // MARK: Rows

  private func work(_ row: Request, _ body: [UInt8]) {
    let isWhole = submit(row, body)
    state.withLock { state in
      state.inHand.remove(row.client)
      if isWhole { state.done.append(row) }
    }
    if isWhole { changed() }
    takeUpLine(of: row.client)
  }

  /// Does something on another thread, for which `end` waits.
  func begin(_ body: @escaping @Sendable () -> Void) { queue.async(group: group, execute: body) }

  private func add(_ client: [UInt8], _ number: UInt64, _ answer: ForwardedAnswer) {
    let answer = Answer(client: client, number: number, answer: answer, lsn: engine.admittedLSN)
    if send(answer) { return }
    state.withLock { $0.answers.append(answer) }
    changed()
  }

  /// - Returns: false if the engine has not got all: the row is looked at again.
  func submit(_ row: Request, _ body: [UInt8]) -> Bool {
    // No server writes a row with such a name, and none waits for an answer.
    guard row.client.count <= WriteOrigin.clientByteCountMax else { return true }
    guard let contents = RequestBody.decode(body, count: row.count) else {
      // Nor one with such a body.
      for index in 0..<UInt64(clamping: min(row.count, 10_000)) {
        add(row.client, row.number &+ index, .refused("the request is damaged"))
      }
      return true
    }
    for (index, content) in contents.enumerated() {
      let number = row.number &+ UInt64(index)
      let (last, isEnded) = state.withLock { ($0.lastNumbers[row.client], $0.isEnded) }
      if isEnded { return false }
      if let last, number <= last { continue }
      guard submit(content, row.client, number) else { return false }
      state.withLock { $0.lastNumbers[row.client] = number }
    }
    return true
  }

  /// - Returns: false if the engine has refused it before it was admitted: leading pauses, and the epoch goes on.
  private func submit(
    _ content: ForwardedWrite.Content, _ client: [UInt8], _ number: UInt64
  ) -> Bool {
    let origin = WriteOrigin(client: client, number: number)
    let inside = Inside()
    let completion: SharedRequestCompletion = { [self] outcome, _ in
      switch outcome {
      case .made(.some): break
      case .made(nil): add(client, number, .nothing)
      case .stale: add(client, number, .stale)
      case .answered(let body): add(client, number, .answered(body))
      case .failed(let error):
        if let answer = ForwardedAnswer(error) {
          add(client, number, answer)
        } else {
          inside.noteRefusal()
        }
      }
    }
    switch content {
    case .write(let write):
      engine.submit(EncodedWrite(write, system: write.system, origin: origin)) { result in
        switch result {
        case .success(let lsn): completion(.made(lsn), nil)
        case .failure(let error): completion(.failed(error), nil)
        }
      }
    case .result(let result, let input):
      make(result, of: input, origin) { completion($0, nil) }
    case .request(let request):
      let (handler, wasThere) = handler()
      guard handler != nil else {
        // It may be about to take some, or to leave the leading to another server.
        if wasThere || .now - begun < Self.handlerDelay { return false }
        add(client, number, .refused(Self.takesNone))
        return true
      }
      make(request, origin, completion)
    }
    return !inside.end()
  }
}

/// A row of requests.
struct Request: Sendable {
  let client: [UInt8]
  /// Of its first write.
  let number: UInt64
  let count: Int64
}
