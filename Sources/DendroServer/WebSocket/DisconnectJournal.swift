import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// What clients have registered to be written when they leave, kept in the second root of the database: what a crash of the
/// server has left there is written when the database is served again.
///
/// | path in the second root | value |
/// | --- | --- |
/// | `onDisconnect/SESSION/NUMBER` | children `write`, a write that is kept (`Node(keeping:)`), and `by`, the number of its registrant; or a string: the path whose operations are cancelled |
/// | `onDisconnect/SESSION/by-NUMBER` | a registrant (`Registrant`) |
///
/// Earlier releases have kept a write without its registrant, at the place itself. It is written without being judged again.
///
/// The numbers of a session ascend; together its entries add up to its operations. A request is answered once its entry is
/// as durable as the database makes its writes. The last write of a session removes its entries: both happen, or neither.
///
/// What the entries of a session add up to is what is written at its end: a request that the disk has refused has left no
/// entry. A last write that the disk refuses stays in the second root, and is tried again (`retry`).
///
/// Where several servers have the database, the one that leads makes all changes, and all last writes: for the sessions of
/// others when they say that those have ended, or when they are gone themselves.
final class DisconnectJournal: Sendable {
  private let engine: Engine
  /// The last writes of sessions that the disk has refused.
  private let refused = Mutex<[Refused]>([])
  /// The sessions whose last write is under way, and what waits for it.
  private let ending = Mutex<[String: [@Sendable (EngineError?) -> Void]]>([:])
  /// The sessions of which the server that leads was not told that they have ended.
  private let untold = Mutex<Set<String>>([])
  /// Whether a last write was not made since this server did not lead. Its entries are in the second root.
  private let hasWithheld = Atomic<Bool>(false)

  private struct Refused {
    let id: String
    let write: EncodedWrite
    let judge: (any WriteJudge)?
  }

  /// The entries of one session.
  struct Session {
    /// The number of the next entry.
    fileprivate var next = 0
    /// Of all entries.
    fileprivate var byteCount = 0
    /// Also of a session that keeps nothing.
    var registrants = Registrants()
    /// How many of them are kept.
    fileprivate var keptRegistrantCount = 0
    let progress = Progress()

    init() {}

    /// Whether there is something to remove at the end.
    var isKept: Bool { next > 0 }
  }

  /// What is known of the entries of one session.
  final class Progress: Sendable {
    /// The changes of which it is not known whether they are there.
    fileprivate let pendingCount = Atomic<Int>(0)
    /// Whether the last one that is there has left entries.
    fileprivate let hasEntries = Atomic<Bool>(false)

    fileprivate var isPending: Bool { pendingCount.load(ordering: .acquiring) > 0 }
  }

  /// What a request does.
  enum Request {
    /// The number is that of its registrant.
    case register(Draft, by: Int)
    case cancel(Path)
  }

  /// - Returns: nil for a database that has no files to write.
  init?(_ engine: Engine) {
    guard engine.path != nil, !engine.isReadOnly else { return nil }
    self.engine = engine
  }

  // MARK: Registering

  /// The bytes of entries that are kept although the operations do not need them any more, beside as many again as the
  /// operations have.
  private static let spareByteCountMax = 64 << 10

  /// Adds an entry. If most of the entries are not needed any more, one takes the place of all.
  ///
  /// - Parameters:
  ///   - id: of the session.
  ///   - neededByteCount: about the bytes that the operations of the session take, this one included.
  ///   - completion: called with the reason why the entry is not kept; nil if it is.
  func keep(
    _ request: Request, of id: String, _ session: inout Session, neededByteCount: Int,
    completion: @escaping @Sendable (EngineError?) -> Void
  ) {
    let entry: Node
    switch request {
    case .register(let draft, let registrant): entry = Self.entry(draft, by: registrant)
    case .cancel(let path): entry = Node(.string("\(path)"))
    }
    session.byteCount += Self.byteCount(of: entry)
    let change: Write
    // All entries are seen here only once they are there.
    let isSeen = !isElsewhere || !session.progress.isPending
    if session.byteCount > 2 * neededByteCount + Self.spareByteCountMax, isSeen {
      var all = operations(of: id)
      switch request {
      case .register(let draft, _): all.add(draft)
      case .cancel(let path): all.cancel(path)
      }
      change = Self.replacement(of: id, &session, by: all)
    } else {
      var entries: [Write.Entry] = []
      for (number, registrant) in session.registrants.all.enumerated().dropFirst(
        session.keptRegistrantCount)
      {
        entries.append(Self.entry(at: Self.key(registrant: number), registrant.node))
      }
      session.keptRegistrantCount = session.registrants.all.count
      entries.append(Self.entry(at: Key(session.next), entry))
      session.next += 1
      change = .update(Self.path(of: id), entries)
    }
    let progress = session.progress
    let leavesEntries = if case .remove = change { false } else { true }
    progress.pendingCount.add(1, ordering: .acquiringAndReleasing)
    submit(change) { error in
      if error == nil { progress.hasEntries.store(leavesEntries, ordering: .releasing) }
      progress.pendingCount.subtract(1, ordering: .acquiringAndReleasing)
      completion(error)
    }
  }

  /// Whether another server has made the last write of a session that goes on here, since it took this server for gone.
  func hasEnded(_ id: String, _ progress: Progress) -> Bool {
    guard engine.sharedLog != nil, !progress.isPending,
      progress.hasEntries.load(ordering: .acquiring)
    else { return false }
    // The first registrant is there as long as the session has entries, unless its server was taken for gone and the client
    // has registered more since.
    let first = Self.path(of: id).appending(Self.key(registrant: 0))
    return engine.systemNode(at: first).isEmpty && !progress.isPending
  }

  /// Whether the entries that are seen here are all that a session has.
  func showsAll(of session: Session?) -> Bool {
    !isElsewhere || session.map { !$0.progress.isPending } ?? true
  }

  private var passesOn: Bool { engine.sharedLog?.passesOn ?? false }

  /// Whether several servers have the database, and this one does not lead.
  private var isElsewhere: Bool { engine.sharedLog != nil && !engine.isLeading }

  private static func entry(_ draft: Draft, by registrant: Int) -> Node {
    var entry = Node.empty
    entry.graft(Node(keeping: EncodedWrite(draft)), at: Path.root.appending(writeKey))
    entry.graft(Node(.integer(Int64(registrant))), at: Path.root.appending(registrantKey))
    return entry
  }

  private static func entry(at key: Key, _ node: Node) -> Write.Entry {
    Write.Entry(path: Path.root.appending(key), action: .set(node))
  }

  private func submit(_ change: Write, _ completion: @escaping @Sendable (EngineError?) -> Void) {
    if isElsewhere, !passesOn { return completion(.unavailable("another server leads")) }
    engine.submit(EncodedWrite(nil, system: EncodedWrite(change))) { result in
      if case .failure(let error) = result { completion(error) } else { completion(nil) }
    }
  }

  /// The write that puts one entry of each registrant in the place of all.
  private static func replacement(
    of id: String, _ session: inout Session, by all: DisconnectOperations
  ) -> Write {
    session.byteCount = 0
    session.keptRegistrantCount = 0
    guard let draft = all.draft else { return .remove(path(of: id)) }
    var entries = Node.empty
    for (number, registrant) in session.registrants.all.enumerated() {
      entries.graft(registrant.node, at: Path.root.appending(key(registrant: number)))
    }
    session.keptRegistrantCount = session.registrants.all.count
    let parts = Dictionary(grouping: draft.parts) { session.registrants.number(at: $0.path) }
    for (registrant, parts) in parts.sorted(by: { $0.key < $1.key }) {
      guard let own = Draft(parts: parts.map(\.draft)) else { continue }
      let isKnown = registrant < session.registrants.all.count
      let entry =
        isKnown ? Self.entry(own, by: registrant) : Node(keeping: EncodedWrite(own))
      session.byteCount += byteCount(of: entry)
      entries.graft(entry, at: Path.root.appending(Key(session.next)))
      session.next += 1
    }
    return .set(path(of: id), entries)
  }

  private static func byteCount(of entry: Node) -> Int { BodyWriter.byteCount(entry) + 64 }

  static let root = Path.root.appending(Key(fixed: "onDisconnect"))

  private static func path(of id: String) -> Path { root.appending(key(id)) }

  private static let registrantPrefix = "by-"
  private static func key(registrant number: Int) -> Key { key("\(registrantPrefix)\(number)") }

  /// The key of a name that this process has made.
  private static func key(_ name: String) -> Key {
    guard let key = try? Key(name) else { preconditionFailure("\(name) is a key") }
    return key
  }

  private static let writeKey = Key(fixed: "write")
  private static let registrantKey = Key(fixed: "by")

  /// What the entries of a session add up to now, those included that are not durable yet.
  func operations(of id: String) -> DisconnectOperations {
    Self.operations(engine.systemNode(at: Self.path(of: id)))
  }

  // MARK: The end of a session

  /// Writes what a session has registered, as far as it is allowed, and removes its entries in the same write.
  ///
  /// A write that the disk refuses is reported once, as one without a completion is.
  ///
  /// - Parameters:
  ///   - id: of the session.
  ///   - rights: who may do what.
  ///   - identity: who has registered what is at a location; nil if that is not known.
  func end(
    _ id: String, _ rights: Rights, on queue: DispatchQueue, identity: (Path) -> Identity?
  ) {
    if passesOn { return tellEnd(of: id) }
    end(id, rights, on: queue, identity: identity, completion: { _ in })
  }

  private func end(
    _ id: String, _ rights: Rights, on queue: DispatchQueue, identity: (Path) -> Identity?,
    completion: @escaping @Sendable (EngineError?) -> Void
  ) {
    // Its entries are there until its last write is covered: it would be made twice.
    let isFirst = ending.withLock { ending in
      defer { ending[id, default: []].append(completion) }
      return ending[id] == nil
    }
    guard isFirst else { return }
    // One that there was no room for is made anew.
    refused.withLock { $0.removeAll { $0.id == id } }
    let removal = EncodedWrite(.remove(Self.path(of: id)))
    LastWrite(
      operations(of: id).draft, rights, removal: removal, on: queue, identity: identity
    ).make { [self] write, judge, wasDenied in
      self.write(Refused(id: id, write: write, judge: judge), isFirst: true, wasDenied)
    }
  }

  private func hasEnded(_ last: Refused, _ error: EngineError?) {
    guard last.write.system != nil else { return }
    for completion in ending.withLock({ $0.removeValue(forKey: last.id) }) ?? [] {
      completion(error)
    }
  }

  /// As `end`, of a session of which only the entries are known. Returns once its last write is admitted.
  ///
  /// - Parameter completion: called once it is made; with the reason why it is not.
  func endKept(
    _ id: String, _ rights: Rights, _ authenticator: Authenticator, on queue: DispatchQueue,
    _ completion: @escaping @Sendable (EngineError?) -> Void
  ) {
    let entries = engine.systemNode(at: Self.path(of: id))
    if entries.isEmpty, ending.withLock({ $0[id] == nil }) { return completion(nil) }
    let registrants = Self.registrants(entries)
    end(id, rights, on: queue) { path in
      guard let registrant = registrants[path] else { return nil }
      return authenticator.believes(registrant.voucher) ? registrant.identity : .anonymous
    } completion: {
      completion($0)
    }
  }

  /// Tells the server that leads that a session has ended.
  func tellEnd(of id: String) {
    let request = SharedRequest(
      .nothing, context: PassedOnRequest.endOfSession(id).bytes, isPatient: true)
    let isPassed = engine.sharedLog?.pass(request, origin: nil) { [self] outcome, _ in
      switch outcome {
      // A server that answers has not understood it.
      case .failed(.unavailable), .failed(.undecided), .answered: noteUntold(id)
      case .made, .stale, .failed: break
      }
    }
    if isPassed != true { noteUntold(id) }
  }

  private func write(
    _ last: Refused, isFirst: Bool, _ wasDenied: @escaping @Sendable (Bool) -> Void = { _ in }
  ) {
    // The server that leads next finds the entries.
    if isElsewhere {
      hasWithheld.store(true, ordering: .releasing)
      return hasEnded(last, .unavailable("another server leads"))
    }
    let completion: Completion = { [self] result in
      guard case .failure(let error) = result else {
        hasEnded(last, nil)
        return wasDenied(false)
      }
      if case .denied = error { return wasDenied(true) }
      defer { hasEnded(last, error) }
      switch error {
      case .diskFull, .memoryLimit, .tooManyWaiting: refused.withLock { $0.append(last) }
      case .storage(let cause) where cause.isOutOfSpace: refused.withLock { $0.append(last) }
      case .unavailable, .undecided:
        hasWithheld.store(true, ordering: .releasing)
        return
      // Only an engine that opens the database again takes it.
      default: break
      }
      if case .closed = error { return }
      if isFirst { engine.options.unreportedFailure?(error, .zero) }
    }
    if let judge = last.judge {
      engine.submit(last.write, judge: judge, completion: completion)
    } else {
      engine.submit(last.write, completion: completion)
    }
  }

  /// Tries the last writes again that were refused for lack of room, in their order. It may wait for the disk.
  func retry() {
    let writes = refused.withLock { writes in
      defer { writes = [] }
      return writes
    }
    for last in writes { write(last, isFirst: false) }
  }

  /// Notes a session of which the server that leads has still to be told that it has ended.
  func noteUntold(_ id: String) { untold.withLock { _ = $0.insert(id) } }

  /// The sessions of which the server that leads has still to be told that they have ended.
  func takeUntold() -> Set<String> {
    untold.withLock { untold in
      defer { untold = [] }
      return untold
    }
  }

  /// The sessions that have entries.
  var keptSessions: [String] {
    engine.systemNode(at: Self.root).children.map { "\($0.key)" }
  }

  /// Whether last writes were not made, since this was asked last, because this server did not lead.
  func takeWithheld() -> Bool { hasWithheld.exchange(false, ordering: .acquiringAndReleasing) }

  /// The sessions whose last write waits for room.
  var refusedCount: Int { refused.withLock { $0.count } + untold.withLock { $0.count } }

  /// Whether no session has entries.
  var isEmpty: Bool { engine.systemNode(at: Self.root).isEmpty }

  // MARK: After a crash

  /// Whether the database in a directory may have entries; false if the directory cannot be read.
  static func mayHaveEntries(_ directory: String) -> Bool {
    DisconnectFiles.areThere(beside: directory) || Engine.mayHaveSecondRoot(at: directory)
  }

  /// Writes what the sessions of a server that has crashed had registered, each session as one write with the removal of
  /// its entries. Who has registered it counts with the claims of then, whether the token has expired since or not, unless
  /// what has vouched for them is not believed any more.
  ///
  /// - Parameter hasEnded: whether a session is none that this server still has.
  func writeLeftovers(
    _ rights: Rights, _ authenticator: Authenticator, on queue: DispatchQueue,
    where hasEnded: (String) -> Bool
  ) {
    let areFilesGone =
      DisconnectFiles(engine)?.takeOver { id, operations, completion in
        guard (try? Key(id)) != nil else { return completion(false) }
        var session = Session()
        submit(Self.replacement(of: id, &session, by: operations)) { completion($0 == nil) }
      } ?? true
    // What is written now would be written again otherwise.
    guard areFilesGone else { return }
    for (id, _) in engine.systemNode(at: Self.root).children where hasEnded("\(id)") {
      endKept("\(id)", rights, authenticator, on: queue) { _ in }
    }
  }

  /// Who has registered the entries of a session.
  private static func registrants(_ entries: Node) -> Registrants {
    var registrants = Registrants()
    var numbers: [Int64: Int] = [:]
    for (key, node) in entries.children {
      guard key.string.hasPrefix(registrantPrefix), let registrant = Registrant(node),
        let old = Int64(key.string.dropFirst(registrantPrefix.count))
      else { continue }
      numbers[old] = registrants.number(of: registrant)
    }
    for (_, entry) in entries.children {
      guard case .integer(let old)? = entry.child(registrantKey).scalar, let number = numbers[old],
        let write = entry.child(writeKey).keptWrite
      else { continue }
      registrants.note(write.withView { Draft(decoding: $0) }, number)
    }
    return registrants
  }

  /// What the entries of a session add up to.
  static func operations(_ entries: Node) -> DisconnectOperations {
    var operations = DisconnectOperations()
    for (_, entry) in entries.children {
      if case .string(let text) = entry.scalar {
        if let path = try? Path(parsing: text) { operations.cancel(path) }
      } else if let write = entry.keptWrite ?? entry.child(writeKey).keptWrite {
        operations.add(write.withView { Draft(decoding: $0) })
      }
    }
    return operations
  }
}
