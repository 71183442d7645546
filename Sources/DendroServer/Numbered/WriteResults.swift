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
/// | `numbered/since` | a number: the results of all openings of users that were heard since are there, in milliseconds since 1970 |
/// | `numbered/strangers` | a number: the same for those who have not signed in, if it is later |
/// | `numbered/results/USER/CLIENT/INCARNATION/heard` | a number: when the opening was heard, within a day |
/// | `numbered/results/USER/CLIENT/INCARNATION/from` | a string: tells the address of a stranger from others |
/// | `numbered/results/USER/CLIENT/INCARNATION/low` | a number: the client has the answers of all writes below it |
/// | `numbered/results/USER/CLIENT/INCARNATION/NUMBER` | a string: the answer's status, a space, and a digest of the write |
///
/// A result is kept by the write that it is about: both are there, or neither is. It goes once the client says that it has
/// the answer, or with up to 15 others if the client has several writes on their way, and as ``ForgottenResults`` says.
final class WriteResults: Sendable {
  private let engine: Engine
  private let branch: String
  private let state: Mutex<State>

  private struct State {
    var since: Int64
    var strangersSince: Int64
    /// The openings of which writes are on their way.
    var openings: [Opening: Present] = [:]
    /// So many writes were begun since the results were last looked through.
    var countSinceTrim = 0
    /// After so many they are looked through: the more clients there are, the more seldom.
    var trimInterval = 1

    /// Forgets an opening if none of its writes is on its way.
    mutating func endUnused(_ opening: Opening) {
      if openings[opening]?.running.isEmpty == true { openings[opening] = nil }
    }
  }

  private struct Running {
    let digest: String
    var waiting: [@Sendable (WriteOutcome) -> Void] = []
  }

  /// What is known of an opening before the engine has it.
  private struct Present {
    /// The client has the answers of all writes below it.
    var low = 1
    /// The writes on their way, by their numbers, and what waits for the same answers.
    var running: [Int: Running] = [:]

    /// - Parameter kept: what the engine has of the opening.
    mutating func begin(
      _ number: Int, _ digest: String, lowest: Int, _ kept: () -> Node
    ) -> Beginning {
      if let running = running[number] { return running.digest == digest ? .running : .other }
      let kept = kept()
      low = max(low, WriteResults.low(kept))
      // A copy of a write that was answered: the client does not wait for it any more.
      if number < low { return .answered(.made) }
      if case .string(let text)? = kept.child(Key(number)).scalar {
        let parts = text.split(separator: " ")
        guard parts.count == 2, parts[1] == digest else { return .other }
        return .answered(parts[0] == "ok" ? .made : .denied(.deny))
      }
      low = max(low, lowest)
      running[number] = Running(digest: digest)
      return .new
    }
  }

  /// One opening of a client.
  struct Opening: Hashable, Sendable {
    let user: Key
    let client: Key
    let incarnation: Key
    fileprivate let path: Path
    private let hash: Int

    init(user: Key, client: Key, incarnation: Key) {
      self.user = user
      self.client = client
      self.incarnation = incarnation
      path = WriteResults.results.appending(user).appending(client).appending(incarnation)
      // Not computed again for each write.
      var hasher = Hasher()
      hasher.combine(user)
      hasher.combine(client)
      hasher.combine(incarnation)
      hash = hasher.finalize()
    }

    static func == (a: Opening, b: Opening) -> Bool {
      a.incarnation == b.incarnation && a.client == b.client && a.user == b.user
    }

    func hash(into hasher: inout Hasher) { hasher.combine(hash) }
  }

  /// A write of a client.
  struct ID: Sendable {
    let opening: Opening
    let number: Int
  }

  enum Beginning {
    /// It is to be made: `end` has to be called.
    case new
    /// It has this answer already.
    case answered(WriteOutcome)
    /// It is on its way: `wait` tells how it ends.
    case running
    /// The number has another write.
    case other
  }

  private static let trimIntervalMin = 4096
  /// So many results of a client that has several writes on their way are given back together.
  private static let groupCount = 16

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
    state = Mutex(
      State(since: Self.time(Self.since, kept), strangersSince: Self.time(Self.strangers, kept)))
  }

  private static func time(_ key: Key, _ kept: Node) -> Int64 {
    if case .integer(let time)? = kept.child(key).scalar { time } else { 0 }
  }

  /// What the hello says.
  var server: NumberedServer {
    // What is not durable may be lost, and is then no sign of another history.
    let durableLSN = engine.statistics().durableLSN
    // What the client has seen at another server is no other history either.
    let lsn = max(durableLSN, engine.sharedLog?.knownLSN ?? .zero).rawValue
    // Of a database that several servers have, another one may have forgotten some.
    let kept = engine.systemNode(at: NumberedResults.root)
    let (since, strangersSince) = state.withLock { state in
      state.since = max(state.since, Self.time(Self.since, kept))
      state.strangersSince = max(state.strangersSince, Self.time(Self.strangers, kept))
      return (state.since, state.strangersSince)
    }
    return NumberedServer(branch: branch, lsn: lsn, since: since, strangersSince: strangersSince)
  }

  // MARK: One write

  /// - Parameter lowest: of the client's writes of this opening without an answer.
  func begin(_ id: ID, _ digest: String, lowest: Int) -> Beginning {
    state.withLock { state in
      let beginning = state.openings[id.opening, default: Present()].begin(
        id.number, digest, lowest: lowest
      ) { engine.systemNode(at: id.opening.path) }
      if case .new = beginning { return beginning }
      state.endUnused(id.opening)
      return beginning
    }
  }

  /// Has `then` be called with the answer to a write that is on its way.
  ///
  /// - Returns: false if it is not on its way any more.
  func wait(for id: ID, then: @escaping @Sendable (WriteOutcome) -> Void) -> Bool {
    state.withLock { state in
      guard state.openings[id.opening]?.running[id.number] != nil else { return false }
      state.openings[id.opening]?.running[id.number]?.waiting.append(then)
      return true
    }
  }

  /// The write has its answer, which is as durable as it has to be.
  func end(_ id: ID, _ outcome: WriteOutcome) {
    let running = state.withLock { state in
      let running = state.openings[id.opening]?.running.removeValue(forKey: id.number)
      state.endUnused(id.opening)
      return running
    }
    for waiting in running?.waiting ?? [] { waiting(outcome) }
  }

  /// The change of the second root that keeps the result of a write that has begun, and gives back what the client needs no
  /// more.
  ///
  /// - Parameters:
  ///   - address: of the client.
  ///   - now: milliseconds since 1970.
  func change(
    _ id: ID, isMade: Bool, _ digest: String, from address: String, now: Int64
  ) -> EncodedWrite {
    let opening = id.opening
    let kept = engine.systemNode(at: opening.path)
    let (low, trims) = state.withLock { state in
      state.countSinceTrim += 1
      let trims = state.countSinceTrim >= state.trimInterval
      if trims { state.countSinceTrim = 0 }
      return (state.openings[opening]?.low ?? 1, trims)
    }
    var entries = [
      Self.set(Key(id.number), Node(.string("\(isMade ? "ok" : "permission_denied") \(digest)")))
    ]
    if now - (ForgottenResults.heard(kept) ?? 0) > ForgottenResults.day {
      entries.append(Self.set(ForgottenResults.heard, Node(.integer(now))))
      if opening.user == ForgottenResults.strangers {
        // No address is kept: a word of the database's own tells one from another.
        let digest = SHA1.digest(of: Array("\(branch) \(address)".utf8))
        let text = hexadecimal(Array(digest.prefix(8)))
        entries.append(Self.set(ForgottenResults.from, Node(.string(text))))
      }
    }
    if low > Self.low(kept) {
      entries.append(Self.set(Self.low, Node(.integer(Int64(low)))))
      // A client that has many writes on their way raises it with each: what it needs no more goes in groups.
      let first = kept.children.first { _ in true }.flatMap { Int($0.key.string) } ?? low
      if low == id.number || low - first >= Self.groupCount {
        for (key, _) in kept.children {
          guard let number = Int(key.string), number < low else { break }
          entries.append(Write.Entry(path: Path.root.appending(key), action: .remove))
        }
      }
    }
    if trims { trim(now: now) }
    return EncodedWrite(.update(opening.path, entries))
  }

  private static func set(_ key: Key, _ node: Node) -> Write.Entry {
    Write.Entry(path: Path.root.appending(key), action: .set(node))
  }

  // MARK: Giving back

  /// Gives back results that are not kept for longer.
  private func trim(now: Int64) {
    let forgotten = ForgottenResults(engine.systemNode(at: Self.results), now: now)
    let (since, strangersSince) = state.withLock { state in
      state.trimInterval = max(Self.trimIntervalMin, forgotten.openingCount)
      state.since = max(state.since, forgotten.since)
      state.strangersSince = max(state.strangersSince, forgotten.strangersSince)
      return (state.since, state.strangersSince)
    }
    if forgotten.paths.isEmpty { return }
    var entries = forgotten.paths.map {
      Write.Entry(path: Self.results.appending($0), action: .remove)
    }
    for (key, time) in [(Self.since, since), (Self.strangers, strangersSince)] where time > 0 {
      let path = NumberedResults.root.appending(key)
      entries.append(Write.Entry(path: path, action: .set(Node(.integer(time)))))
    }
    // If it had to wait for the disk, it is left to the next time.
    _ = engine.submitAtOnce(
      EncodedWrite(nil, system: EncodedWrite(.update(.root, entries))), completion: { _ in })
  }

  private static func low(_ incarnation: Node) -> Int {
    if case .integer(let number)? = incarnation.child(low).scalar { Int(number) } else { 1 }
  }

  private static let since = Key(fixed: "since")
  private static let strangers = Key(fixed: "strangers")
  private static let low = Key(fixed: "low")
  fileprivate static let results = NumberedResults.root.appending(NumberedResults.results)
}

extension WriteResults.Opening {
  init(_ number: WriteNumber, by identity: Identity) {
    let text: String
    switch identity {
    case .anonymous: text = ForgottenResults.strangers.string
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
    self.init(
      user: key(text), client: key(number.client), incarnation: key(number.incarnation))
  }
}
