import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

extension Command {
  static let `import` = Command(
    name: "import", summary: "read a JSON file into the database",
    discussion: """
      The file goes to PATH, where nothing may be yet (or --replace). It is read and written in chunks,
      each of them one write: a file of any size needs little memory, readers see it grow, and if it
      turns out bad, the chunks before stay. With --atomic it is one write, all or nothing, held in
      memory as a whole. A regular file that is to replace data is checked first, before anything goes.
      Export form is understood: {".value": …, ".priority": …}. A key that the rules forbid, or any
      other bad data, ends the import with its place in the file and exit code 65.
      """,
    parameters: [
      .directory, .path, Parameter(name: "FILE", summary: "a JSON file; - is standard input"),
    ],
    options: [
      Option(name: "atomic", short: "a", summary: "one write: all or nothing"),
      Option(name: "replace", short: "r", summary: "remove what is at PATH"),
      Option(
        name: "chunk-size", value: "BYTES", summary: "text in one write, 1048576 if left out"),
      .force, .dryRun, .durability, .json,
    ],
    examples: [
      Example(line: "dendro import db / cities.json", summary: "into a new database"),
      Example(line: "dendro import db /backup - < export.json", summary: "from a pipe"),
      Example(
        line: "dendro import db /cities cities.json --replace", summary: "instead of the old"),
    ],
    run: { try Importer($0).run() })
}

/// One import: pieces from the reader become entries of updates, a few of which are on their way to
/// the disk at any time.
final class Importer {
  private let arguments: Arguments
  private let target: Path
  private let file: InputFile
  private let chunkBytes: Int
  private var session: Session?
  private let progress = Progress("importing")

  private var entries: [Write.Entry] = []
  private var entryBytes = 0
  /// The whole document in one piece.
  private var whole: Node?
  private var needsRemoval = false
  private var textBytes: UInt64 = 0
  private var leaves = 0
  private let writes = Writes()
  /// Says nothing but how far it is.
  private let isQuiet: Bool
  /// Of a finished import.
  private(set) var leafCount = 0
  private(set) var outcome = ""

  init(_ arguments: Arguments, isQuiet: Bool = false) throws {
    self.arguments = arguments
    self.isQuiet = isQuiet
    let location = try Location(arguments.positional(1))
    guard !location.isPriority else {
      throw Failure(.badInput, "a file cannot go to a priority; 'set' does that")
    }
    target = location.path
    chunkBytes = try arguments.integer("chunk-size", in: 1...(64 << 20)) ?? 1 << 20
    file = try InputFile(arguments.positional[2])
  }

  func run() throws -> ExitCode {
    if arguments.has(.dryRun) { return try check(reports: true) }
    if arguments.has("replace"), file.size != nil { _ = try check(reports: false) }

    let session = try Session.writing(arguments, path: arguments.positional(1), create: true)
    self.session = session
    let existing = session.engine.view(at: target)
    if !existing.isEmpty {
      let what = "\(Format.count(existing.leafCount(), "leaf"))"
      guard arguments.has("replace") else {
        try session.close()
        throw Failure(
          .problem, "there is data at \(target) already: \(what)",
          hint: "--replace removes it; or give a PATH where nothing is")
      }
      try Terminal.confirm("This replaces \(what) at \(target).", force: arguments.has(.force))
      needsRemoval = true
    }
    Interruption.listen()
    let isAtomic = arguments.has("atomic")
    do {
      if isAtomic {
        note("importing \(file.name) as one write")
        let node = try parseWhole()
        try writes.submit(
          node.isEmpty ? .remove(target) : .set(target, node), leaves: node.leafCount(),
          to: session.engine)
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
      // What is on its way arrives; only then is it known what is there.
      try? writes.wait()
      let done = writes.summary
      try? session.close()
      var failure = Failure(describing: error)
      if error is JSONError { failure.message = "\(file.name): \(failure.message)" }
      failure.message +=
        done.count == 0
        ? "\n  nothing was written"
        : "\n  nothing of this chunk was written; \(Format.count(done.leaves, "leaf")) before it are "
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
    try session.close()
    leafCount = done.leaves
    outcome =
      "\(Format.count(done.leaves, "leaf")) from \(Format.bytes(textBytes)) (\(done.text)) in "
      + Format.seconds(seconds)
    if !isQuiet { try report(done, seconds: seconds) }
    return .success
  }

  private func note(_ line: String) {
    if !isQuiet { Terminal.note(line) }
  }

  // MARK: Reading

  private func parse(_ yield: @escaping (JSONPiece) throws -> Void) throws {
    try JSONParser.parse(
      depth: target.count, pieceBytes: min(1 << 16, max(1, chunkBytes / 4)),
      source: { try self.read(into: $0) }, yield: yield)
  }

  private func parseWhole() throws -> Node {
    let whole = Whole()
    try JSONParser.parse(
      depth: target.count, pieceBytes: .max, source: { try self.read(into: $0) },
      yield: { whole.node = $0.node ?? .empty })
    return whole.node
  }

  private final class Whole { var node = Node.empty }

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
  private func check(reports: Bool) throws -> ExitCode {
    let file = try InputFile(arguments.positional[2])
    let leaves = Counter()
    let bytes = Counter()
    do {
      try JSONParser.parse(
        depth: target.count,
        source: { buffer in
          let count = try file.read(into: buffer)
          bytes.value += count
          return count
        },
        yield: { leaves.value += $0.node?.leafCount() ?? 0 })
    } catch let error as JSONError {
      throw Failure(.badInput, "\(file.name): \(error)\n  nothing was written")
    }
    if reports {
      let line =
        "\(file.name) is good: \(Format.count(leaves.value, "leaf")), "
        + "\(Format.bytes(UInt64(bytes.value))); nothing was written"
      try OneWrite.report(
        nil, arguments, more: [("leaves", .count(leaves.value)), ("bytes", .count(bytes.value))],
        line: line)
    }
    return .success
  }

  private final class Counter { var value = 0 }

  // MARK: Chunks

  private func take(_ piece: JSONPiece) throws {
    if piece.path.isRoot, let node = piece.node {
      whole = node
      return
    }
    switch piece.content {
    case .node(let node):
      entries.append(Write.Entry(path: piece.path, action: node.isEmpty ? .remove : .set(node)))
    case .priority(let priority):
      entries.append(Write.Entry(path: piece.path, action: .setPriority(priority)))
    }
    // What an entry takes besides its text, so that a chunk of removals is bounded, too.
    entryBytes += piece.byteCount + 16
    if entryBytes >= chunkBytes { try flush() }
  }

  private func flush() throws {
    guard let session else { return }
    if let whole {
      // A set replaces what is there: no removal needed.
      if !whole.isEmpty || needsRemoval {
        try writes.submit(
          whole.isEmpty ? .remove(target) : .set(target, whole), leaves: whole.leafCount(),
          to: session.engine)
      }
      return
    }
    guard !entries.isEmpty else { return }
    if needsRemoval {
      needsRemoval = false
      try writes.submit(.remove(target), leaves: 0, to: session.engine)
    }
    let chunk = entries
    entries = []
    entryBytes = 0
    try submit(chunk[...], to: session.engine)
  }

  /// One update, or as many as it takes where a key came twice: an update cannot name a place twice,
  /// nor a place and one below it.
  private func submit(_ chunk: ArraySlice<Write.Entry>, to engine: Engine) throws {
    let write = Write.update(target, Array(chunk))
    if chunk.count > 1, (try? write.validate()) == nil {
      let middle = chunk.startIndex + chunk.count / 2
      try submit(chunk[..<middle], to: engine)
      try submit(chunk[middle...], to: engine)
      return
    }
    var leaves = 0
    for entry in chunk { if case .set(let node) = entry.action { leaves += node.leafCount() } }
    try writes.submit(write, leaves: leaves, to: engine)
  }

  private func report(_ done: Writes.Summary, seconds: Double) throws {
    let terminal = try Terminal(color: arguments.value("color"))
    if arguments.wantsJSON {
      try terminal.print(
        JSONValue.object([
          ("file", .string(file.name)), ("path", .string("\(target)")),
          ("atomic", .bool(arguments.has("atomic"))), ("bytes", .unsigned(textBytes)),
          ("leaves", .count(done.leaves)), ("writes", .count(done.count)),
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

extension JSONPiece {
  fileprivate var node: Node? {
    if case .node(let node) = content { return node }
    return nil
  }
}

/// Writes on their way: a few at a time, so that reading, applying and the disk's work overlap and
/// memory stays bounded.
private final class Writes: Sendable {
  struct Summary {
    var count = 0
    var leaves = 0
    var first: LogSequenceNumber?
    var last: LogSequenceNumber?

    var text: String {
      let writes = Format.count(count, "write")
      guard let first, let last else { return "nothing changed" }
      return first == last ? "\(writes), LSN \(first)" : "\(writes), LSN \(first) to \(last)"
    }
  }

  private struct State {
    var done = Summary()
    var error: EngineError?
  }

  private static let inFlight = 4
  private let state = Mutex(State())
  private let room = DispatchSemaphore(value: inFlight)

  var summary: Summary { state.withLock { $0.done } }

  func submit(_ write: Write, leaves: Int, to engine: Engine) throws {
    room.wait()
    if let error = state.withLock({ $0.error }) {
      room.signal()
      throw error
    }
    engine.submit(Draft(write)) { [self] result in
      state.withLock { state in
        switch result {
        case .success(let lsn):
          state.done.leaves += leaves
          guard let lsn else { break }
          state.done.count += 1
          state.done.first = state.done.first ?? lsn
          state.done.last = lsn
        case .failure(let error): state.error = state.error ?? error
        }
      }
      room.signal()
    }
  }

  /// Returns once all have arrived.
  func wait() throws {
    for _ in 0..<Self.inFlight { room.wait() }
    for _ in 0..<Self.inFlight { room.signal() }
    if let error = state.withLock({ $0.error }) { throw error }
  }
}
