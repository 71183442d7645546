import DendroTestSupport
import Foundation
import Synchronization

/// What clients of a cluster's servers did and were told.
final class ClientHistory: Sendable {
  /// What one session has seen, in its order: values of the register that it read, or has written.
  struct Session: Sendable {
    let name: String
    var values: [Int] = []
    /// Whether it knows that what it has registered for its end is kept; nil: it does not know.
    var hasRegistered: Bool?
  }

  let writes = WriteHistory()
  private let all = Mutex<[Session]>([])

  var sessions: [Session] { all.value }

  func add(_ session: Session) { all.withLock { $0.append(session) } }
}

/// One client, on a thread of its own, which goes from server to server.
final class HistoryClient: @unchecked Sendable {
  enum Kind: CaseIterable {
    case rest
    case socket
    /// Gives its writes numbers, and sends each until it has an answer.
    case numbered
  }

  // Unchecked: only the thread that calls `run()` uses it.
  private let kind: Kind
  private let id: Int
  private let places: [HistoryCluster.Place]
  private let history: ClientHistory
  private let isEnded: () -> Bool
  private var random: SeededGenerator
  private var lastNumber = 0
  private var sessionCount = 0

  init(
    _ kind: Kind, _ id: Int, _ places: [HistoryCluster.Place], _ history: ClientHistory,
    _ seed: UInt64, isEnded: @escaping () -> Bool
  ) {
    self.kind = kind
    self.id = id
    self.places = places
    self.history = history
    self.isEnded = isEnded
    random = SeededGenerator(seed: seed)
  }

  func run() {
    while !isEnded() {
      let port = places[random.below(places.count)].port.load(ordering: .relaxed)
      switch kind {
      case .rest: rest(port)
      case .socket, .numbered: session(port)
      }
      usleep(10_000)
    }
  }

  private func note(
    _ value: Int, _ begun: ContinuousClock.Instant, _ outcome: WriteHistory.Operation.Outcome
  ) {
    history.writes.add(.init(value, begun: begun, outcome))
  }

  private static func update(_ value: Int) -> String {
    "{\"register\":\(value),\"count\":{\".sv\":{\"increment\":1}}}"
  }

  private func rest(_ port: UInt16) {
    guard let http = try? HTTPClient(port: port) else { return }
    for _ in 0..<(1 + random.below(20)) where !isEnded() {
      let value = history.writes.newValue()
      let begun = ContinuousClock.now
      switch try? http("PATCH", "/h.json", Self.update(value)).status {
      case 200: note(value, begun, .acknowledged)
      case 503: note(value, begun, .refused)
      default: return note(value, begun, .undecided)
      }
      usleep(useconds_t(1_000 + random.below(10_000)))
    }
  }

  /// A write that is to be sent again.
  private var unanswered: (value: Int, number: Int, begun: ContinuousClock.Instant)?

  private func session(_ port: UInt16) {
    guard let client = try? WebSocketClient(port: port, "/.ws?v=5&ns=default") else { return }
    sessionCount += 1
    var session = ClientHistory.Session(name: "\(id)-\(sessionCount)")
    defer { history.add(session) }
    guard session.register(at: client) else { return }
    for _ in 0..<(1 + random.below(30)) where !isEnded() {
      if random.oneIn(4) {
        guard let answer = try? client("g", "{\"p\":\"/h/register\",\"q\":{}}").last else { return }
        if let value = Int(answer.dropFirst("{\"s\":\"ok\",\"d\":".count).dropLast()) {
          session.values.append(value)
        }
      } else {
        guard write(client, &session) else { return }
      }
      usleep(useconds_t(1_000 + random.below(10_000)))
    }
  }

  /// - Returns: false if the connection is lost.
  private func write(_ client: WebSocketClient, _ session: inout ClientHistory.Session) -> Bool {
    var name = ""
    let isNew = unanswered == nil
    let (value, begun): (Int, ContinuousClock.Instant)
    if kind == .numbered {
      if unanswered == nil {
        lastNumber += 1
        unanswered = (history.writes.newValue(), lastNumber, .now)
      }
      let number: Int
      (value, number, begun) = unanswered ?? (0, 0, .now)
      let digits = String(id, radix: 16)
      let own = String(repeating: "0", count: 32 - digits.count) + digits
      name = ",\"n\":{\"c\":\"\(own)\",\"i\":\"0000000000000001\",\"n\":\(number),\"l\":\(number)}"
    } else {
      (value, begun) = (history.writes.newValue(), .now)
    }
    let body = "{\"p\":\"/h\",\"d\":\(Self.update(value))\(name)}"
    guard let answer = try? client("m", body).last else {
      if kind == .socket { note(value, begun, .undecided) }
      return false
    }
    if answer.hasPrefix("{\"s\":\"ok\"") {
      note(value, begun, .acknowledged)
      // What was sent before may have been written before the session began.
      if isNew { session.values.append(value) }
      unanswered = nil
    } else if kind == .socket {
      // It does not say whether the write may be there.
      note(value, begun, .undecided)
    }
    return true
  }
}

extension ClientHistory.Session {
  /// Registers that it is counted once it has left.
  ///
  /// - Returns: false if the connection is lost.
  mutating func register(at client: WebSocketClient) -> Bool {
    let left = "{\"p\":\"/left/\(name)\",\"d\":{\".sv\":{\"increment\":1}}}"
    guard let answer = try? client("o", left).last else { return false }
    hasRegistered = answer.hasPrefix("{\"s\":\"ok\"") ? true : nil
    return true
  }
}
