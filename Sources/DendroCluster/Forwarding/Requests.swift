import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// The writes that other servers have passed on to this one, which leads.
struct Requests {
  private let epoch: Int64
  /// The last number of each opening of a server that the engine has got in this epoch.
  private var lastNumbers: [[UInt8]: UInt64] = [:]
  private let answers = Answers()
  /// When there were some, and whether there are other servers at all.
  private(set) var lastTime: ContinuousClock.Instant?
  var hasFollowers = true

  /// Filled by completions, on their threads.
  private final class Answers: Sendable {
    private let waiting = Mutex<[(client: [UInt8], number: UInt64, answer: ForwardedAnswer)]>([])

    func add(_ client: [UInt8], _ number: UInt64, _ answer: ForwardedAnswer) {
      waiting.withLock { $0.append((client, number, answer)) }
    }

    var all: [(client: [UInt8], number: UInt64, answer: ForwardedAnswer)] {
      waiting.withLock { $0 }
    }

    func removeFirst(_ count: Int) { waiting.withLock { $0.removeFirst(count) } }
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

  init(epoch: Int64) { self.epoch = epoch }

  /// How long the thread sleeps before it looks again.
  func pause(_ longest: Duration) -> Duration {
    guard hasFollowers else { return longest }
    let isBusy = lastTime.map { .now - $0 < .seconds(1) } ?? false
    return min(longest, isBusy ? .milliseconds(2) : .milliseconds(20))
  }

  /// Passes on what there is, as far as the engine takes it without waiting.
  mutating func step(_ session: ClusterSession, _ engine: Engine) throws(ClusterError) {
    guard hasFollowers else { return }
    let rows = try session.requests(epoch: epoch)
    if !rows.isEmpty { lastTime = .now }
    for row in rows {
      guard submit(row, engine) else { break }
      try session.removeRequest(row, epoch: epoch)
    }
    let answers = answers.all
    for answer in answers {
      try session.answer(answer.client, answer.number, answer.answer, epoch: epoch)
    }
    self.answers.removeFirst(answers.count)
  }

  /// - Returns: false if the engine would have to wait: the row is looked at again.
  private mutating func submit(_ row: Request, _ engine: Engine) -> Bool {
    // No server writes a row with such a name, and none waits for an answer.
    guard row.client.count <= WriteOrigin.clientByteCountMax else { return true }
    guard let writes = RequestBody.decode(row.body, count: row.count) else {
      // Nor one with such a body.
      for index in 0..<UInt64(clamping: min(row.count, 10_000)) {
        answers.add(row.client, row.number &+ index, .refused("the request is damaged"))
      }
      return true
    }
    let answers = answers
    for (index, write) in writes.enumerated() {
      let number = row.number &+ UInt64(index)
      if let last = lastNumbers[row.client], number <= last { continue }
      let client = row.client
      let named = EncodedWrite(
        write, system: nil, origin: WriteOrigin(client: client, number: number))
      // Refused before it was admitted: leading pauses, and the epoch goes on.
      let isInside = Inside()
      let isTaken = engine.submitAtOnce(named) { result in
        switch result {
        case .success(.some): break
        case .success(nil): answers.add(client, number, .nothing)
        case .failure(let error):
          if let answer = ForwardedAnswer(error) {
            answers.add(client, number, answer)
          } else {
            isInside.noteRefusal()
          }
        }
      }
      if !isTaken || isInside.end() { return false }
      lastNumbers[client] = number
    }
    return true
  }
}

/// A row of requests.
struct Request: Sendable {
  let client: [UInt8]
  /// Of its first write.
  let number: UInt64
  let count: Int64
  let body: [UInt8]
}
