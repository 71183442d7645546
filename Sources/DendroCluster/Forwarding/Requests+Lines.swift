import DendroTree
import Synchronization

/// The line of a server that follows, as the leader has it.
struct FollowerLine {
  let line: Line
  /// What the server has sent, and the engine has not got.
  var rows = Queue<(row: Request, body: [UInt8])>()
  var byteCount = 0
  /// What was sent, and the server has not noted. If the line ends, it goes by the table.
  var answers: [Requests.Answer] = []
  var notedCount: UInt64 = 0
  /// Whether the engine has refused a row, so that those behind it may not be made.
  var isOver = false

  /// Of rows that wait. A server that follows has less on its way.
  static let byteCountMax = 64 << 20
}

extension Requests: LineLeader {
  func welcome(_ line: Line, client: [UInt8], epoch: Epoch) -> Bool {
    guard epoch == self.epoch, client.count <= WriteOrigin.clientByteCountMax else { return false }
    let (isTaken, old) = state.withLock { state -> (Bool, Line?) in
      if state.isEnded { return (false, nil) }
      let old = state.removeLine(of: client)
      // Batches come behind it.
      line.send(.welcome(epoch))
      state.lines[client] = FollowerLine(line: line)
      state.lastTime = .now
      return (true, old)
    }
    if isTaken { line.hand(to: self) }
    old?.close()
    changed()
    return isTaken
  }

  /// Sends a batch that PostgreSQL has to all servers that have a line.
  func stream(_ batch: LoggedBatch) {
    let lines = state.withLock { $0.lines.values.map(\.line) }
    // One that is longer is missed, and asked for in PostgreSQL.
    guard !lines.isEmpty, batch.body.count <= Self.streamedByteCountMax else { return }
    let frame = LineMessage.batch(batch).frame
    for line in lines { line.send(frame: frame) }
  }

  private static let streamedByteCountMax = 16 << 20

  /// How many servers have a line.
  var lineCount: Int { state.withLock { $0.lines.count } }

  /// Ends all lines, so that those who follow look who leads.
  func closeLines() {
    let lines = state.withLock { $0.lines.values.map(\.line) }
    for line in lines { line.close() }
  }

  /// - Returns: false if the server has no line.
  func send(_ answer: Answer) -> Bool {
    let line = state.withLock { state -> Line? in
      guard let line = state.lines[answer.client] else { return nil }
      state.lines[answer.client]?.answers.append(answer)
      // In their order, since they are counted.
      line.line.send(
        .answers([
          Forwarding.Answer(number: answer.number, answer: answer.answer, lsn: answer.lsn)
        ]))
      return line.line
    }
    return line != nil
  }

  /// Goes on with what has come over a line while the server's row of the table was in hand.
  func takeUpLine(of client: [UInt8]) {
    let begins = state.withLock { state in
      guard state.lines[client]?.rows.isEmpty == false else { return false }
      return state.inHand.insert(client).inserted
    }
    if begins { workLine(of: client) }
  }

  /// Gives the engine what has come over a line, until there is nothing more. The opening is in hand.
  private func workLine(of client: [UInt8]) {
    while true {
      let next = state.withLock { state -> (row: Request, body: [UInt8])? in
        guard !state.isEnded, state.lines[client]?.isOver == false,
          let next = state.lines[client]?.rows.popFirst()
        else {
          state.inHand.remove(client)
          return nil
        }
        state.lines[client]?.byteCount -= next.body.count
        return next
      }
      guard let next else { return }
      if submit(next.row, next.body) { continue }
      // It comes again, by the table, and so does what is behind it.
      let line = state.withLock { state in
        state.lines[client]?.isOver = true
        state.inHand.remove(client)
        return state.lines[client]?.line
      }
      line?.close()
      return
    }
  }
}

extension Requests: Line.Handler {
  func take(_ message: LineMessage, from line: Line) -> Bool {
    let (isMeant, begun) = state.withLock { state -> (Bool, [UInt8]?) in
      guard let client = state.client(of: line) else { return (false, nil) }
      switch message {
      case .request(let number, let count, let body):
        guard let known = state.lines[client], !known.isOver, !state.isEnded,
          known.byteCount + body.count <= FollowerLine.byteCountMax
        else { return (false, nil) }
        state.lines[client]?.rows.append(
          (Request(client: client, number: number, count: count), body))
        state.lines[client]?.byteCount += body.count
        return (true, state.inHand.insert(client).inserted ? client : nil)
      case .noted(let count):
        guard let known = state.lines[client], count >= known.notedCount,
          count - known.notedCount <= UInt64(known.answers.count)
        else { return (false, nil) }
        state.lines[client]?.answers.removeFirst(Int(count - known.notedCount))
        state.lines[client]?.notedCount = count
        return (true, nil)
      default: return (false, nil)
      }
    }
    if let begun { begin { [self] in workLine(of: begun) } }
    return isMeant
  }

  func lineEnded(_ line: Line) {
    state.withLock { state in
      if let client = state.client(of: line) { _ = state.removeLine(of: client) }
    }
    changed()
  }
}

extension Requests.State {
  fileprivate func client(of line: Line) -> [UInt8]? {
    lines.first { $0.value.line === line }?.key
  }

  /// Has what a server has not noted go by the table.
  fileprivate mutating func removeLine(of client: [UInt8]) -> Line? {
    guard let old = lines.removeValue(forKey: client) else { return nil }
    answers += old.answers
    return old.line
  }
}
