import DendroStorage

/// Extends an archive by what is new in a database.
final class Archiver {
  private let source: DatabaseDirectory
  private let archive: LogArchive
  private let target: String
  private let terminal: Terminal
  private let isJSON: Bool

  /// - Parameter target: as it stands on the command line.
  init(_ arguments: Arguments, to target: String) throws {
    self.target = target
    terminal = try Terminal(color: arguments.value("color"))
    isJSON = arguments.wantsJSON
    let path = try Arguments.absolutePath(target, "TARGET")
    source = try DatabaseDirectory.open(
      arguments.directoryPath(), environment: .system, mode: .following)
    guard try !source.contents().isEmpty else {
      throw Failure(.problem, "there is no database at \(arguments.directory)")
    }
    do throws(StorageError) {
      archive = try LogArchive(of: source, at: path)
    } catch {
      guard case .io(_, _, _, .exists) = error else { throw error }
      throw Failure(.problem, "\(target) exists already, and is no archive")
    }
  }

  deinit {
    archive.close()
    source.close()
  }

  func runOnce() throws -> ExitCode {
    try show(Progress("backup"), archive.extend())
    try terminal.flush()
    return .success
  }

  /// Extends the archive until a signal comes.
  ///
  /// - Parameter interval: milliseconds after which what is not sealed yet is copied too; nil for never.
  func run(interval: Int?) throws -> ExitCode {
    Interruption.listen()
    var tailTime = Platform.uptime()
    var isFirst = true
    while true {
      let isEnding = Interruption.isRequested
      let isTailDue =
        interval.map { Platform.uptime() - tailTime >= UInt64($0) * 1_000_000 } ?? false
      let copiesTail = isFirst || isEnding || isTailDue
      if copiesTail { tailTime = Platform.uptime() }
      let progress = Progress("archive")
      let step: LogArchive.Extension
      do throws(StorageError) {
        step = try archive.extend(sealedOnly: !copiesTail)
      } catch {
        // The writer removes files for long.
        guard case .locked = error, !isEnding else { throw error }
        Interruption.sleep(milliseconds: Self.pause)
        continue
      }
      if isFirst || !step.isEmpty { try show(progress, step) }
      try terminal.flush()
      isFirst = false
      if isEnding { return .interrupted }
      Interruption.sleep(milliseconds: Self.pause)
    }
  }

  private static let pause = 100

  private func show(_ progress: Progress, _ step: LogArchive.Extension) throws {
    if isJSON {
      try terminal.print(
        JSONValue.object([
          ("target", .string(target)), ("lsn", .unsigned(step.lastLSN.rawValue)),
          ("segments", .count(step.segments.count)), ("sealed", .count(step.sealed.count)),
          ("checkpoints", .count(step.checkpoints.count)), ("bytes", .unsigned(step.byteCount)),
          ("seconds", .number(progress.seconds)),
        ]).text)
    } else if step.isEmpty {
      try terminal.print("nothing new; the archive reaches write \(step.lastLSN)")
    } else {
      try terminal.print(
        "\(Format.bytes(step.byteCount)) in \(Format.count(step.segments.count, "segment")) and "
          + "\(Format.count(step.checkpoints.count, "checkpoint")); the archive reaches write \(step.lastLSN)"
      )
    }
  }
}
