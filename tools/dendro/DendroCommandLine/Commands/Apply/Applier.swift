import DendroEngine
import DendroStorage
import DendroTree

/// The lines of a file.
private final class LineReader {
  private let file: InputFile
  private var bytes: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  private let part = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 1)
  private(set) var number = 0

  init(_ file: InputFile) { self.file = file }

  deinit { part.deallocate() }

  /// The next line that is not empty, without its end; nil at the end of the file.
  func next() throws -> [UInt8]? {
    while true {
      var searched = start
      while true {
        if let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
          let line = Array(bytes[start..<end])
          start = end + 1
          number += 1
          if line.contains(where: { $0 > 0x20 }) { return line }
          break
        }
        if isAtEnd {
          let line = Array(bytes[start...])
          start = bytes.count
          guard line.contains(where: { $0 > 0x20 }) else { return nil }
          number += 1
          return line
        }
        searched = bytes.count - start
        bytes.removeFirst(start)
        start = 0
        let count = try file.read(into: part)
        isAtEnd = count == 0
        bytes.append(contentsOf: part[..<count])
        guard bytes.count <= OneWrite.textLimit else {
          throw Failure(
            .badInput, "a line has more than \(Format.bytes(UInt64(OneWrite.textLimit)))")
        }
      }
    }
  }
}

/// One run of `apply`.
final class Applier {
  private let arguments: Arguments
  private let file: InputFile
  private let reader: LineReader
  /// Lines in one write; nil for all.
  private let chunkSize: Int?
  private var lineCount = 0
  private var writes = PendingWrites.Summary()

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    let size = try arguments.integer("chunk-size", in: 1...1_000_000)
    guard size == nil || !arguments.has("atomic") else {
      throw Failure.usage("--atomic and --chunk-size cannot be given together")
    }
    chunkSize = arguments.has("atomic") || arguments.has(.dryRun) ? nil : size ?? 1
    file = try InputFile(arguments.positional[1])
    reader = LineReader(file)
  }

  func run() throws -> ExitCode {
    if arguments.has(.dryRun) { return try rehearse() }
    let session = try Session.writing(arguments, creates: true)
    Interruption.listen()
    let progress = Progress("applying")
    do {
      while let lines = try chunk() {
        try apply(lines, session)
        progress.update(
          UInt64(lineCount), of: nil,
          "\(Format.count(lineCount, "line")), \(Format.count(UInt64(Double(lineCount) / max(0.001, progress.seconds))))/s"
        )
      }
    } catch {
      progress.clear()
      try? session.close()
      var failure = Failure(describing: error)
      failure.message +=
        writes.count == 0
        ? "\n  nothing was written" : "\n  nothing of this write was done; before it \(writes.text)"
      if error is Interruption.Ended {
        Terminal.note("dendro: \(failure.message)")
        return .interrupted
      }
      throw failure
    }
    progress.clear()
    try session.close()
    try report()
    return .success
  }

  /// The next lines that are one write.
  private func chunk() throws -> [(number: Int, line: WriteLine)]? {
    var lines: [(number: Int, line: WriteLine)] = []
    while lines.count < chunkSize ?? .max, let line = try next() { lines.append(line) }
    return lines.isEmpty ? nil : lines
  }

  private func next() throws -> (number: Int, line: WriteLine)? {
    guard let bytes = try reader.next() else { return nil }
    do {
      var line = try bytes.withUnsafeBytes { try WriteLine($0) }
      if arguments.has("ignore-was") { line.was = nil }
      return (reader.number, line)
    } catch {
      var failure = Failure(describing: error)
      failure.code = .badInput
      failure.message = "\(file.name), line \(reader.number): \(failure.message)"
      throw failure
    }
  }

  private func apply(_ lines: [(number: Int, line: WriteLine)], _ session: Session) throws {
    let old = try session.engine.wholeHead().root
    let write: Write?
    if lines.count == 1 {
      try check(lines[0].line, lines[0].number, old)
      write = lines[0].line.write
    } else {
      write = try Self.merged(result(of: lines, on: old), old)
    }
    if let write, let lsn = try session.write(write) {
      writes.count += 1
      writes.first = writes.first ?? lsn
      writes.last = lsn
    }
    lineCount += lines.count
  }

  private func result(of lines: [(number: Int, line: WriteLine)], on root: Node) throws -> Node {
    var root = root
    for (number, line) in lines {
      try check(line, number, root)
      _ = root.apply(line.write)
    }
    return root
  }

  private func check(_ line: WriteLine, _ number: Int, _ root: Node) throws {
    guard !line.isMet(by: root) else { return }
    throw Failure(
      .problem,
      "\(file.name), line \(number): what is at \(line.write.path) is not what it was",
      hint: "--ignore-was writes all the same")
  }

  /// The one write that makes one tree of another; nil if they are equal.
  private static func merged(_ new: Node, _ old: Node) -> Write? {
    if new == old { return nil }
    if let found = Write.changing(old, to: new, at: .root) { return found.write }
    return new.isEmpty ? .remove(.root) : .set(.root, new)
  }

  /// Applies the lines to the tree in memory only.
  private func rehearse() throws -> ExitCode {
    var root = Node.empty
    let path = try arguments.directoryPath()
    if Platform.exists(path) {
      do {
        root = try ReadState.states(of: path, at: [nil])[0].root
      } catch let error as EngineError {
        guard case .storage(.notFound) = error else { throw error }
      }
    }
    while let line = try next() {
      root = try result(of: [line], on: root)
      lineCount += 1
    }
    try OneWrite.report(
      nil, arguments, more: [("lines", .count(lineCount)), ("leaves", .count(root.leafCount()))],
      line: "\(Format.count(lineCount, "line")) can be done; nothing was written")
    return .success
  }

  private func report() throws {
    let terminal = try Terminal(color: arguments.value("color"))
    if arguments.wantsJSON {
      try terminal.print(
        JSONValue.object([
          ("file", .string(file.name)), ("lines", .count(lineCount)),
          ("atomic", .bool(arguments.has("atomic"))), ("writes", .count(writes.count)),
          ("firstLSN", writes.first.map { .unsigned($0.rawValue) } ?? .null),
          ("lastLSN", writes.last.map { .unsigned($0.rawValue) } ?? .null),
        ]).text)
    } else {
      try terminal.print("applied \(Format.count(lineCount, "line")) (\(writes.text))")
    }
    try terminal.flush()
  }
}
