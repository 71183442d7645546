import Dendro
import DendroStorage

/// Extends an archive by what is new in a database.
final class Archiver {
  private let archive: DatabaseArchive
  private let target: String
  private let terminal: Terminal
  private let isJSON: Bool

  /// - Parameter target: as it stands on the command line.
  init(_ arguments: Arguments, to target: String) throws {
    self.target = target
    terminal = try Terminal(color: arguments.value("color"))
    isJSON = arguments.wantsJSON
    let path = try Arguments.absolutePath(target, "TARGET")
    do {
      archive = try DatabaseArchive(
        of: arguments.directoryPath(), at: path, parity: arguments.wantsParity(otherwise: true))
    } catch let error as DatabaseError {
      switch error.cause as? StorageError {
      case .notFound?:
        throw Failure.noDatabase(at: arguments.directory)
      case .io(_, _, _, .exists)?:
        throw Failure(.problem, "\(target) exists already, and is no archive")
      default: throw error
      }
    }
  }

  deinit { archive.close() }

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
      let step: DatabaseArchive.Extension
      do {
        step = try archive.extend(sealedOnly: !copiesTail)
      } catch let error as DatabaseError {
        // The writer removes files for long.
        guard error.code == .locked, !isEnding else { throw error }
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

  private func show(_ progress: Progress, _ step: DatabaseArchive.Extension) throws {
    if isJSON {
      try terminal.print(
        JSONValue.object([
          ("target", .string(target)), ("lsn", .unsigned(step.lastLSN)),
          ("segments", .count(step.segmentCount)), ("sealed", .count(step.sealedSegmentCount)),
          ("checkpoints", .count(step.checkpointCount)), ("bytes", .unsigned(step.byteCount)),
          ("parityBytes", .unsigned(step.parityByteCount)),
          ("seconds", .number(progress.seconds)),
        ]).text)
      return
    }
    let parity =
      step.parityByteCount == 0 ? "" : ", \(Format.bytes(step.parityByteCount)) of parity"
    if step.isEmpty {
      try terminal.print("nothing new\(parity); the archive reaches write \(step.lastLSN)")
    } else {
      try terminal.print(
        "\(Format.bytes(step.byteCount)) in \(Format.count(step.segmentCount, "segment")) and "
          + "\(Format.count(step.checkpointCount, "checkpoint"))\(parity); the archive reaches write \(step.lastLSN)"
      )
    }
  }
}
