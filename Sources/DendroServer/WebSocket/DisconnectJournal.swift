import Dendro
import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// What clients have registered to be written when they leave, kept in the second root of the database: what a crash of the
/// server has left there is written when the database is served again.
///
/// | path in the second root | value |
/// | --- | --- |
/// | `onDisconnect/SESSION/NUMBER` | a write that is kept (`Node(keeping:)`), or a string: the path whose operations are cancelled |
///
/// The numbers of a session ascend; together its entries add up to its operations. A request is answered once its entry is
/// as durable as the database makes its writes. The last write of a session removes its entries: both happen, or neither.
///
/// What the entries of a session add up to is what is written at its end: a request that the disk has refused has left no
/// entry. A last write that the disk refuses stays in the second root, and is tried again (`retry`).
final class DisconnectJournal: Sendable {
  private let engine: Engine
  /// The last writes of sessions that the disk has refused.
  private let refused = Mutex<[EncodedWrite]>([])

  /// The entries of one session.
  struct Session {
    /// The number of the next entry.
    fileprivate var next = 0
    /// Of all entries.
    fileprivate var byteCount = 0

    init() {}

    /// Whether there is something to remove at the end.
    var isKept: Bool { next > 0 }
  }

  /// What a request does.
  enum Request {
    case register(Draft)
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
  ///   - completion: called with whether the entry is kept.
  func keep(
    _ request: Request, of id: String, _ session: inout Session, neededByteCount: Int,
    completion: @escaping @Sendable (Bool) -> Void
  ) {
    let entry: Node
    switch request {
    case .register(let draft): entry = Node(keeping: EncodedWrite(draft))
    case .cancel(let path): entry = Node(.string("\(path)"))
    }
    session.byteCount += Self.byteCount(of: entry)
    let change: Write
    if session.byteCount > 2 * neededByteCount + Self.spareByteCountMax {
      var all = operations(of: id)
      switch request {
      case .register(let draft): all.add(draft)
      case .cancel(let path): all.cancel(path)
      }
      change = Self.replacement(of: id, &session, by: all)
    } else {
      change = .set(Self.path(of: id).appending(Self.key(session.next)), entry)
      session.next += 1
    }
    submit(change, completion)
  }

  private func submit(_ change: Write, _ completion: @escaping @Sendable (Bool) -> Void) {
    engine.submit(EncodedWrite(nil, system: EncodedWrite(change))) { result in
      if case .success = result { completion(true) } else { completion(false) }
    }
  }

  /// The write that puts one entry in the place of all.
  private static func replacement(
    of id: String, _ session: inout Session, by all: DisconnectOperations
  ) -> Write {
    session.byteCount = 0
    guard let draft = all.draft else { return .remove(path(of: id)) }
    let entry = Node(keeping: EncodedWrite(draft))
    session.byteCount = byteCount(of: entry)
    var entries = Node.empty
    entries.graft(entry, at: Path.root.appending(key(session.next)))
    session.next += 1
    return .set(path(of: id), entries)
  }

  private static func byteCount(of entry: Node) -> Int { BodyWriter.byteCount(entry) + 64 }

  static let root = Path.root.appending(key("onDisconnect"))

  private static func path(of id: String) -> Path { root.appending(key(id)) }

  private static func key(_ number: Int) -> Key { key(String(number)) }

  private static func key(_ text: String) -> Key {
    guard let key = try? Key(text) else { preconditionFailure("\(text) is a key") }
    return key
  }

  /// What the entries of a session add up to now, those included that are not durable yet.
  func operations(of id: String) -> DisconnectOperations {
    Self.operations(engine.systemNode(at: Self.path(of: id)))
  }

  // MARK: The end of a session

  /// Writes what a session has registered, and removes its entries in the same write.
  ///
  /// A write that is refused is reported once, as one without a completion is.
  ///
  /// - Parameters:
  ///   - id: of the session.
  ///   - revise: gets all operations as one update of the root, and returns what of it is to be written.
  func end(_ id: String, _ revise: (Draft) -> Draft? = { $0 }) {
    let draft = operations(of: id).draft.flatMap(revise)
    let removal = EncodedWrite(.remove(Self.path(of: id)))
    write(EncodedWrite(draft.map { EncodedWrite($0) }, system: removal), isFirst: true)
  }

  private func write(_ last: EncodedWrite, isFirst: Bool) {
    engine.submit(last) { [self] result in
      guard case .failure(let error) = result else { return }
      switch error {
      case .diskFull, .memoryLimit, .tooManyWaiting: refused.withLock { $0.append(last) }
      case .storage(let cause) where cause.isOutOfSpace: refused.withLock { $0.append(last) }
      // Only an engine that opens the database again takes it.
      default: break
      }
      if case .closed = error { return }
      if isFirst { engine.options.unreportedFailure?(error, .zero) }
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

  /// The sessions whose last write waits for room.
  var refusedCount: Int { refused.withLock { $0.count } }

  // MARK: After a crash

  /// Whether the database in a directory may have entries; false if the directory cannot be read.
  static func mayHaveEntries(_ directory: String) -> Bool {
    DisconnectFiles.areThere(beside: directory) || Engine.mayHaveSecondRoot(at: directory)
  }

  /// Writes what the sessions of a server that has crashed had registered, each session as one write with the removal of
  /// its entries.
  func writeLeftovers() {
    let areFilesGone =
      DisconnectFiles(engine)?.takeOver { id, operations, completion in
        guard (try? Key(id)) != nil else { return completion(false) }
        var session = Session()
        submit(Self.replacement(of: id, &session, by: operations), completion)
      } ?? true
    // What is written now would be written again otherwise.
    guard areFilesGone else { return }
    for (id, _) in engine.systemNode(at: Self.root).children { end("\(id)") }
  }

  /// What the entries of a session add up to.
  static func operations(_ entries: Node) -> DisconnectOperations {
    var operations = DisconnectOperations()
    for (_, entry) in entries.children {
      if case .string(let text) = entry.scalar {
        if let path = try? Path(parsing: text) { operations.cancel(path) }
      } else if let write = entry.keptWrite {
        operations.add(write.withView { Draft(decoding: $0) })
      }
    }
    return operations
  }
}
