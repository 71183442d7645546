import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Synchronization

/// What became of the writes to which clients have given numbers, so that a write that is sent again is not made again.
///
/// | path in the second root | value |
/// | --- | --- |
/// | `numbered/branch` | a string: names the history of the database (`NumberedServer`); without it the database's id does |
/// | `numbered/since` | a number: the results of all clients that were heard since are there, in milliseconds since 1970 |
/// | `numbered/results/USER/CLIENT/heard` | a number: when the client was heard, within a day |
/// | `numbered/results/USER/CLIENT/INCARNATION/NUMBER` | a string: the answer's status, a space, and a digest of the write |
///
/// A result is kept by the write that it is about: both are there, or neither is. It goes once the client says that it has
/// the answer; after 30 days without a word from the client; and if the results of all clients take more than 64 MiB, those
/// that were not heard for longest go first.
final class WriteResults: Sendable {
  private let engine: Engine
  private let branch: String
  private let state: Mutex<State>

  private struct State {
    var since: Int64
    /// Writes on their way, and what waits for the same answers.
    var running: [ID: Running] = [:]
    /// So many writes were begun since the results were last looked through.
    var countSinceTrim = WriteResults.trimInterval
  }

  private struct Running {
    let digest: String
    var waiting: [@Sendable (Outcome) -> Void] = []
  }

  /// A write of a client.
  struct ID: Hashable, Sendable {
    let user: Key
    let client: Key
    let incarnation: Key
    let number: Int

    fileprivate var clientPath: Path { WriteResults.results.appending(user).appending(client) }
    fileprivate var path: Path {
      clientPath.appending(incarnation).appending(WriteResults.key("\(number)"))
    }
  }

  /// What is answered.
  enum Outcome: Sendable {
    case made
    case denied
    case failed(EngineError)
  }

  enum Beginning {
    /// It is to be made: `end` has to be called.
    case new
    /// It has this answer already.
    case answered(Outcome)
    /// It is on its way: `then` will be called.
    case running
    /// The number has another write.
    case other
  }

  private static let trimInterval = 4096
  private static let byteCountMax = 64 << 20
  private static let day: Int64 = 24 * 60 * 60 * 1000

  /// - Returns: nil for a database that cannot be written.
  init?(_ engine: Engine) {
    guard !engine.isReadOnly else { return nil }
    self.engine = engine
    let kept = engine.systemNode(at: NumberedResults.root)
    if case .string(let text)? = kept.child(NumberedResults.branch).scalar {
      branch = text
    } else if let id = engine.databaseID {
      branch = "\(id)"
    } else {
      branch = hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    }
    var since: Int64 = 0
    if case .integer(let time)? = kept.child(Self.since).scalar { since = time }
    state = Mutex(State(since: since))
  }

  /// What the hello says.
  var server: NumberedServer {
    // What is not durable may be lost, and is then no sign of another history.
    let lsn = engine.statistics().durableLSN.rawValue
    return NumberedServer(branch: branch, lsn: lsn, since: state.withLock { $0.since })
  }

  // MARK: One write

  /// - Parameter then: called with the answer if the write is on its way.
  func begin(
    _ id: ID, _ digest: String, then: @escaping @Sendable (Outcome) -> Void
  ) -> Beginning {
    state.withLock { state in
      if let running = state.running[id] {
        guard running.digest == digest else { return .other }
        state.running[id]?.waiting.append(then)
        return .running
      }
      if case .string(let text)? = engine.systemNode(at: id.path).scalar {
        let parts = text.split(separator: " ")
        guard parts.count == 2, parts[1] == digest else { return .other }
        return .answered(parts[0] == "ok" ? .made : .denied)
      }
      state.running[id] = Running(digest: digest)
      return .new
    }
  }

  /// The write has its answer, which is as durable as it has to be.
  func end(_ id: ID, _ outcome: Outcome) {
    let running = state.withLock { $0.running.removeValue(forKey: id) }
    for waiting in running?.waiting ?? [] { waiting(outcome) }
  }

  /// The change of the second root that keeps a result, and gives back what the client needs no more.
  ///
  /// - Parameters:
  ///   - lowest: of the client's writes of this incarnation without an answer.
  ///   - now: milliseconds since 1970.
  func change(
    _ id: ID, isMade: Bool, _ digest: String, lowest: Int, now: Int64
  ) -> EncodedWrite {
    var entries = [
      Write.Entry(
        path: id.path,
        action: .set(Node(.string("\(isMade ? "ok" : "permission_denied") \(digest)"))))
    ]
    let client = engine.systemNode(at: id.clientPath)
    if now - Self.heard(client) > Self.day {
      let heard = id.clientPath.appending(Self.heard)
      entries.append(Write.Entry(path: heard, action: .set(Node(.integer(now)))))
    }
    let incarnation = id.clientPath.appending(id.incarnation)
    for (key, _) in client.child(id.incarnation).children {
      guard let number = Int(key.string), number < lowest else { break }
      entries.append(Write.Entry(path: incarnation.appending(key), action: .remove))
    }
    let trims = state.withLock { state in
      state.countSinceTrim += 1
      if state.countSinceTrim < Self.trimInterval { return false }
      state.countSinceTrim = 0
      return true
    }
    if trims { trim(now: now, besides: id.clientPath) }
    return EncodedWrite(.update(.root, entries))
  }

  // MARK: Giving back

  /// Gives back the results of clients that were not heard for long.
  private func trim(now: Int64, besides own: Path) {
    let results = engine.systemNode(at: Self.results)
    var clients: [(path: Path, heard: Int64)] = []
    for (user, node) in results.children {
      for (client, node) in node.children {
        let path = Self.results.appending(user).appending(client)
        if path != own { clients.append((path, Self.heard(node))) }
      }
    }
    clients.sort { $0.heard < $1.heard }
    var rest = results
    var given: [Write.Entry] = []
    var since: Int64 = 0
    for (path, heard) in clients {
      guard now - heard > 30 * Self.day || rest.isLarger(than: Self.byteCountMax) else { break }
      rest.graft(.empty, at: path.dropFirst(Self.results.count))
      given.append(Write.Entry(path: path, action: .remove))
      // What was heard later in the same day has no time of its own.
      since = heard + Self.day
    }
    if given.isEmpty { return }
    let time = state.withLock { state in
      state.since = max(state.since, min(since, now))
      return state.since
    }
    let path = NumberedResults.root.appending(Self.since)
    given.append(Write.Entry(path: path, action: .set(Node(.integer(time)))))
    // If it had to wait for the disk, it is left to the next time.
    _ = engine.submitAtOnce(
      EncodedWrite(nil, system: EncodedWrite(.update(.root, given))), completion: { _ in })
  }

  private static func heard(_ client: Node) -> Int64 {
    if case .integer(let time)? = client.child(heard).scalar { time } else { 0 }
  }

  private static let since = key("since")
  private static let heard = key("heard")
  fileprivate static let results = NumberedResults.root.appending(NumberedResults.results)

  fileprivate static func key(_ text: String) -> Key {
    guard let key = try? Key(text) else { preconditionFailure("\(text) is a key") }
    return key
  }
}

extension WriteResults.ID {
  init(_ number: WriteNumber, by identity: Identity) {
    let text: String
    switch identity {
    case .anonymous: text = "nobody"
    case .user(let id, _, _), .standIn(let id, _, _): text = "user \(id)"
    case .administrator: text = "administrator"
    }
    func key(_ text: String) -> Key {
      guard let key = try? Key(escaping: text.utf8) else {
        // Longer than a key can be: its digest tells it from others.
        return key(hexadecimal(SHA1.digest(of: Array(text.utf8))))
      }
      return key
    }
    user = key(text)
    client = key(number.client)
    incarnation = key(number.incarnation)
    self.number = number.number
  }
}
