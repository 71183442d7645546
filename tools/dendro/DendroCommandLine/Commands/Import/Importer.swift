import DendroEngine
import DendroStorage
import DendroTree

/// One import: pieces from the reader become updates, a few of which are on their way to the disk at any
/// time.
final class Importer {
  private let arguments: Arguments
  private let target: Path
  private let file: InputFile
  private let format: ImportFormat
  private let chunkBytes: Int
  private let isContinuing: Bool
  /// Whether all is done in memory only.
  private let isDry: Bool
  private var session: Session?
  private let progress = Progress("importing")

  private var chunk = ImportChunk()
  /// The whole document in one piece.
  private var whole: Node?
  private var needsRemoval = false
  private var textBytes: UInt64 = 0
  private let writes = PendingWrites()
  /// Prints nothing but its progress.
  private let isQuiet: Bool
  /// Of a finished import.
  private(set) var leafCount = 0
  private(set) var outcome = ""

  init(_ arguments: Arguments, isQuiet: Bool = false) throws {
    self.arguments = arguments
    self.isQuiet = isQuiet
    let location = try Location(writing: arguments.positional(1))
    guard !location.isPriority else {
      throw Failure(.badInput, "a file cannot be a priority; 'set' sets one")
    }
    target = location.path
    chunkBytes = try arguments.integer("chunk-size", in: 1...(64 << 20)) ?? 1 << 20
    file = try InputFile(arguments.positional[2])
    format = try ImportFormat(arguments)
    isContinuing = arguments.has("continue")
    isDry = arguments.has(.dryRun)
    for option in ["replace", "atomic", "dry-run"] where isContinuing && arguments.has(option) {
      throw Failure.usage("--continue and --\(option) cannot be given together")
    }
  }

  func run() throws -> ExitCode {
    if arguments.has("replace"), file.size != nil, !isDry { try check() }
    let (session, replaced) = try begin()
    self.session = session
    needsRemoval = replaced != nil
    Interruption.listen()
    let isAtomic = arguments.has("atomic")
    do {
      if isAtomic {
        note("importing \(file.name) as one write")
        let node = try parseWhole()
        try writes.submit(
          node.isEmpty ? .remove(target) : .set(target, node), to: session.engine)
      } else {
        note(
          "importing \(file.name) in chunks of about \(Format.bytes(UInt64(chunkBytes))), "
            + "each of them one write (--atomic: all in one)")
        try parse { try self.take($0) }
        try flush()
      }
      try writes.wait()
    } catch {
      progress.clear()
      // Only then is it known what was written.
      try? writes.wait()
      let done = writes.summary
      let leafCount = isDry ? 0 : (try? session.engine.view(at: target).leafCount()) ?? 0
      try? session.close()
      var failure = Failure(describing: error)
      if error is JSONError { failure.message = "\(file.name): \(failure.message)" }
      failure.message +=
        done.count == 0 || isDry
        ? "\n  nothing was written"
        : "\n  nothing of this chunk was written; \(Format.count(leafCount, "leaf")) before it are "
          + "in the database (\(done.text))"
      if error is Interruption.Ended {
        Terminal.note("dendro: \(failure.message)")
        return .interrupted
      }
      throw failure
    }
    progress.clear()
    let done = writes.summary
    let seconds = progress.seconds
    // Nothing else was there: a key that came twice is counted once.
    leafCount = try session.engine.view(at: target).leafCount()
    try session.close()
    if isDry {
      try reportDry(replaced)
      return .success
    }
    outcome =
      "\(Format.count(leafCount, "leaf")) from \(Format.bytes(textBytes)) (\(done.text)) in "
      + Format.seconds(seconds)
    if !isQuiet { try report(done, seconds: seconds) }
    return .success
  }

  private func note(_ line: String) {
    if !isQuiet, !isDry { Terminal.note(line) }
  }

  /// Opens the database, and checks what the import would take away there.
  ///
  /// - Returns: where the import writes; for a dry run an empty database in memory, since only that was checked which
  ///   the files say.
  private func begin() throws -> (Session, ReplacedData?) {
    let session =
      isDry ? try Session.rehearsing(arguments) : try Session.writing(arguments, creates: true)
    var replaced: ReplacedData?
    do {
      replaced = try ReplacedData(by: target, in: session.engine)
      if isContinuing, replaced?.isAtTarget == true { replaced = nil }
      if let replaced {
        guard arguments.has("replace") else {
          throw replaced.refusal(isContinuing: isContinuing)
        }
        try Terminal.confirm(
          replaced.question, force: arguments.has(.force), isRehearsal: isDry)
      }
    } catch {
      try session.close()
      throw error
    }
    guard isDry else { return (session, replaced) }
    try session.close()
    return (Session(engine: Engine.inMemory(), location: .root), replaced)
  }

  // MARK: Reading

  private func parse(_ yield: @escaping (ImportPiece) throws -> Void) throws {
    try format.parse(
      depth: target.count, pieceBytes: min(1 << 16, max(1, chunkBytes / 4)),
      source: { try self.read(into: $0) }, yield: yield)
  }

  private func parseWhole() throws -> Node {
    var whole = Node.empty
    try format.parse(
      depth: target.count, pieceBytes: .max, source: { try self.read(into: $0) },
      yield: { piece in
        guard let node = piece.node else { return }
        if piece.path.isRoot {
          whole = node
        } else {
          _ = whole.apply(node.isEmpty ? .remove(piece.path) : .set(piece.path, node))
        }
      })
    return whole
  }

  private func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if Interruption.isRequested { throw Interruption.Ended() }
    let count = try file.read(into: buffer)
    textBytes += UInt64(count)
    progress.update(
      textBytes, of: file.size,
      "\(Format.bytes(textBytes)), \(Format.bytes(UInt64(Double(textBytes) / max(0.001, progress.seconds))))/s"
    )
    return count
  }

  /// Reads the file to its end without writing.
  private func check() throws {
    let file = try InputFile(arguments.positional[2])
    do {
      try format.parse(
        depth: target.count, pieceBytes: 1 << 16, source: { try file.read(into: $0) },
        yield: { _ in })
    } catch let error as JSONError {
      throw notWritten(error)
    } catch var failure as Failure where failure.code == .badInput {
      progress.clear()
      failure.message += "\n  nothing was written"
      throw failure
    }
  }

  private func notWritten(_ error: JSONError) -> Failure {
    progress.clear()
    return Failure(.badInput, "\(file.name): \(error)\n  nothing was written")
  }

  // MARK: Chunks

  /// Whether an earlier import has written the piece.
  private func isThere(_ piece: ImportPiece) throws -> Bool {
    guard isContinuing, let session else { return false }
    let place = target.appending(piece.path)
    let existing = try session.engine.view(at: place)
    guard !existing.isEmpty else { return false }
    switch piece.content {
    case .priority(let priority): return existing.priority == priority
    case .node(let node):
      guard existing.isContained(in: node) else {
        throw Failure(
          .problem, "\(place) has other data than \(file.name)",
          hint: "--continue is for the file of which an import was interrupted")
      }
      return existing == node
    }
  }

  private func take(_ piece: ImportPiece) throws {
    if try isThere(piece) { return }
    if piece.path.isRoot, let node = piece.node {
      whole = node
      return
    }
    chunk.append(piece)
    if chunk.byteCount >= chunkBytes { try flush() }
  }

  private func flush() throws {
    guard let session else { return }
    if let whole {
      // A set replaces the old node: no removal is needed.
      if !whole.isEmpty || needsRemoval {
        try writes.submit(
          whole.isEmpty ? .remove(target) : .set(target, whole), to: session.engine)
      }
      return
    }
    guard let update = chunk.take(at: target) else { return }
    if needsRemoval {
      needsRemoval = false
      try writes.submit(.remove(target), to: session.engine)
    }
    try writes.submit(update, to: session.engine)
  }

  /// Reports what an import would do.
  private func reportDry(_ replaced: ReplacedData?) throws {
    var more: [(String, JSONValue)] = [
      ("leaves", .count(leafCount)), ("bytes", .unsigned(textBytes)),
    ]
    var line =
      "\(file.name) is good: \(Format.count(leafCount, "leaf")), \(Format.bytes(textBytes)); "
    if let replaced {
      more.append(("replaced", .string("\(replaced.place)")))
      line += "it would replace \(replaced.what) at \(replaced.place); "
    }
    try OneWrite.report(nil, arguments, more: more, line: line + "nothing was written")
  }

  private func report(_ done: PendingWrites.Summary, seconds: Double) throws {
    let terminal = try Terminal(color: arguments.value("color"))
    if arguments.wantsJSON {
      try terminal.print(
        JSONValue.object([
          ("file", .string(file.name)), ("path", .string("\(target)")),
          ("atomic", .bool(arguments.has("atomic"))), ("bytes", .unsigned(textBytes)),
          ("leaves", .count(leafCount)), ("writes", .count(done.count)),
          ("firstLSN", done.first.map { .unsigned($0.rawValue) } ?? .null),
          ("lastLSN", done.last.map { .unsigned($0.rawValue) } ?? .null),
          ("seconds", .number(seconds)),
        ]).text)
    } else {
      try terminal.print("imported to \(target): \(outcome)")
    }
    try terminal.flush()
  }
}

extension ImportPiece {
  fileprivate var node: Node? {
    if case .node(let node) = content { return node }
    return nil
  }
}
