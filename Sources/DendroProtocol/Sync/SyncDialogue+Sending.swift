import DendroTree

// What a client asks for goes to the server in the order in which it was asked for. So many writes are on their way at once
// that the server is never idle; the others wait for answers, and so does what was asked for behind them. So a client that
// comes back with many of them sends the first ones at once, and reads what the server answers meanwhile.

/// How many writes were sent over a connection and have no answer, and how long they are.
struct WritesOnTheirWay: Sendable {
  private static let byteCountMax = 4 << 20

  private let countMax: Int
  private var count = 0
  private var byteCount = 0

  init(atMost countMax: Int) { self.countMax = countMax }

  /// Whether the next one waits, whatever its own length is.
  var isFull: Bool { count >= countMax || byteCount >= Self.byteCountMax }

  /// Whether answers have made room for some more, which are sent together.
  var hasRoom: Bool { !isFull && count <= countMax - countMax / 128 }

  /// The connection is gone.
  mutating func reset() { self = WritesOnTheirWay(atMost: countMax) }

  mutating func add(_ byteCount: Int) {
    count += 1
    self.byteCount += byteCount
  }

  mutating func remove(_ byteCount: Int) {
    count -= 1
    self.byteCount -= byteCount
  }
}

extension SyncDialogue {
  /// What has its place in the order of what the client asks for.
  enum Unsent: Sendable {
    case write(Int)
    /// What transactions have made and a connection before this one has lost.
    case attempt(Int)
    /// What the transactions at a location have made, unless they have to run again by then. None of their writes has a
    /// higher number than the last one.
    case transactions(Path, last: Int)
    case listens([SyncedTree.Request])
    case read(Int)
    case registration(Int)

    var isWrite: Bool {
      switch self {
      case .write, .attempt, .transactions: true
      case .listens, .read, .registration: false
      }
    }
  }

  /// Whether the client may send writes of the present user: the connection is ready, and the server takes the client for
  /// this user. Whoever makes this true calls `sendWrites`.
  private var sendsWrites: Bool { phase == .ready && confirmedUser == user }

  /// Whether a write of now is sent at once.
  var sendsNextWrite: Bool { sendsWrites && unsent.isEmpty && !onTheirWay.isFull }

  /// The writes that were sent over this connection, and have no answer.
  var sentWrites: Set<Int> {
    Set(
      awaited.values.compactMap { request in
        switch request {
        case .write(let number, _), .attempt(let number, _): number
        default: nil
        }
      })
  }

  /// Now or before, by the server's clock.
  var sendingTime: Int64 { knownServer?.time ?? 0 }

  /// Sends all writes without an answer, and what transactions have made, in the order in which they were made, if writes
  /// may be sent. What waits besides goes behind them.
  ///
  /// What was sent over this connection is not sent again.
  mutating func sendWrites() -> [Effect] {
    var others: [Unsent] = []
    while let item = unsent.popFirst() { if !item.isWrite { others.append(item) } }
    if sendsWrites { for item in waitingItems() { unsent.append(item) } }
    return send(others)
  }

  private func waitingItems() -> [Unsent] {
    let sent = sentWrites
    var waiting: [(order: Int, item: Unsent)] = []
    for (number, write) in writes where !write.isHeld && !sent.contains(number) {
      waiting.append((number, .write(number)))
    }
    for (number, attempt) in transactions.attempts where !sent.contains(number) {
      waiting.append((attempt.order, .attempt(number)))
    }
    for (path, ids) in transactions.groups(at: .root) {
      if let last = lastWrite(of: ids) { waiting.append((last, .transactions(path, last: last))) }
    }
    return waiting.sorted { $0.order < $1.order }.map(\.item)
  }

  /// Sends something behind what waits. Writes have to wait for `sendWrites` if they may not be sent now.
  mutating func send(_ items: [Unsent]) -> [Effect] {
    guard phase == .ready else { return [] }
    for item in items where sendsWrites || !item.isWrite { unsent.append(item) }
    return sendUnsent()
  }

  /// Sends what waits, now that something has an answer.
  mutating func sendMore() -> [Effect] { onTheirWay.hasRoom ? sendUnsent() : [] }

  /// Sends what waits, up to a write for which there is no room.
  private mutating func sendUnsent() -> [Effect] {
    var effects: [Effect] = []
    let time = sendingTime
    var lastSet: Int?
    while let next = unsent.first, !(next.isWrite && onTheirWay.isFull) {
      _ = unsent.popFirst()
      switch next {
      case .write(let number):
        guard let write = writes[number], !write.isHeld else { continue }
        if !write.isSent {
          writes[number]?.sentTime = time
          if !write.adds { lastSet = number }
          if write.adds { effects.append(.sent(write: number, time: time)) }
        }
        send(write, number: number, &effects)
      case .attempt(let number): send(attempt: number, &effects)
      case .transactions(let path, let last):
        // What they have made themselves may have hidden what has come meanwhile: on that they run again.
        effects += runTransactions(at: path)
        for number in attemptTransactions(at: path, last: last) {
          send(attempt: number, &effects)
        }
      case .listens(let requests): effects += requests.map { request($0) }
      case .read(let number):
        guard let target = reads[number] else { continue }
        effects.append(request("g", SyncText.read(target), .read(number)))
      case .registration(let number):
        guard let message = registrations[number] else { continue }
        effects.append(request(message.action, message.body, .registration(number)))
      }
    }
    if let lastSet { effects.append(.sent(write: lastSet, time: time)) }
    return effects
  }

  private mutating func send(
    _ write: OutgoingWrite, number: Int, _ effects: inout [Effect]
  ) {
    var message = Message(write.draft)
    if let incarnation = write.incarnation, let name = writeNumber(number, incarnation) {
      message.append(name)
    }
    send(message, &effects) { .write(number, byteCount: $0) }
  }

  private mutating func send(attempt number: Int, _ effects: inout [Effect]) {
    guard let message = transactions.attempts[number]?.message else { return }
    send(message, &effects) { .attempt(number, byteCount: $0) }
  }

  private mutating func send(
    _ message: Message, _ effects: inout [Effect], _ awaits: (_ byteCount: Int) -> Awaited
  ) {
    let byteCount = message.body.count
    onTheirWay.add(byteCount)
    effects.append(request(message.action, message.body, awaits(byteCount)))
  }

  /// By what the server tells a write from others; nil if it does not.
  mutating func writeNumber(_ number: Int, _ incarnation: String) -> WriteNumber? {
    guard server != nil, let client = numbering?.client else { return nil }
    let lowest = min(lowestWrite(), transactions.attempts.keys.min() ?? .max, number)
    return WriteNumber(client: client, incarnation: incarnation, number: number, lowest: lowest)
  }
}
