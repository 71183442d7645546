import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import Testing

@testable import DendroEngine

/// A database with a past, its writer and a reader, on a disk of its own.
final class DescriptorSubject {
  let disk = SimulatedDisk(seed: 1)
  private(set) var engine: Engine
  let reader: Engine
  private var number: Int64 = 0

  init() throws {
    engine = try Self.open(disk)
    reader = try Engine.open(
      at: "/db", options: .inline, environment: disk.environment, mode: .readOnly)
    for _ in 0..<3 {
      try write()
      try write()
      try engine.checkpoint()
    }
    // The last segment has writes, so that a roll ends it.
    try write()
    try write()
  }

  static func open(_ disk: SimulatedDisk) throws -> Engine {
    var options = EngineOptions.inline
    options.history = .all
    return try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  func write() throws {
    number += 1
    let results = Received<Result<LogSequenceNumber?, EngineError>>()
    engine.submit(try set("n\(number)", .integer(number))) { results.add($0) }
    engine.pump()
    _ = try results.all.first?.get()
    #expect(results.all.count == 1)
  }

  /// Opens the database once more, after an orderly end.
  func reopen() throws {
    try engine.close()
    engine = try Self.open(disk)
  }

  func close() throws {
    try reader.close()
    try engine.close()
  }
}

/// What a database does that opens files or directories.
struct DescriptorStep: Sendable, CustomTestStringConvertible {
  let name: String
  /// May be called again after it has failed.
  let run: @Sendable (DescriptorSubject) throws -> Void
  var testDescription: String { name }

  init(_ name: String, _ run: @escaping @Sendable (DescriptorSubject) throws -> Void) {
    self.name = name
    self.run = run
  }

  private static func directory(
    _ subject: DescriptorSubject, _ mode: DatabaseDirectory.Mode = .following
  ) throws -> DatabaseDirectory {
    try DatabaseDirectory.open("/db", environment: subject.disk.environment, mode: mode)
  }

  static let all: [DescriptorStep] = [
    DescriptorStep("a roll") { try $0.engine.roll() },
    DescriptorStep("a checkpoint") { try $0.engine.checkpoint() },
    DescriptorStep("a purge") { subject in
      try subject.reader.close()
      try subject.engine.purgeHistory()
    },
    DescriptorStep("a backup") { try $0.engine.backup(to: "/copy") },
    DescriptorStep("a restored state") { subject in
      _ = try subject.engine.restore(.lsn(LogSequenceNumber(3)), to: "/restored")
    },
    DescriptorStep("an archive") { subject in
      let archive = try LogArchive(of: directory(subject), at: "/archive")
      defer { archive.close() }
      _ = try archive.extend()
    },
    DescriptorStep("a state of the past") { subject in
      let state = try subject.engine.state(at: .lsn(LogSequenceNumber(3)))
      #expect(state?.lsn.rawValue == 3)
    },
    DescriptorStep("a time in the past") { subject in
      _ = try subject.engine.state(at: .time(0))
    },
    DescriptorStep("the range of the past") { subject in
      let range = try subject.engine.historyRange()
      #expect(range.oldest == .zero)
    },
    DescriptorStep("pages of changes") { subject in
      let changes = try subject.engine.changes(since: .zero)
      // What was read before a segment that cannot be opened is a page of its own.
      var writes: [LoggedWrite] = []
      while writes.count < 8 { writes += try changes.page(upTo: LogSequenceNumber(8)) }
      #expect(writes.map(\.lsn.rawValue) == Array(1...8))
    },
    DescriptorStep("a reader that reads again") { subject in
      let lsn = try subject.reader.refresh()
      #expect(lsn == subject.engine.head.lsn)
    },
    DescriptorStep("a reader's opening") { subject in
      let reader = try Engine.open(
        at: "/db", options: .inline, environment: subject.disk.environment, mode: .readOnly)
      #expect(reader.report.unreadableCheckpoints.isEmpty)
      try reader.close()
    },
    DescriptorStep("the value of one location") { subject in
      let state = try Engine.state(
        of: path("n2"), in: "/db", environment: subject.disk.environment)
      #expect(state.lsn == subject.engine.head.lsn)
    },
    DescriptorStep("a repair") { subject in
      let source = try directory(subject, .readOnly)
      defer { source.close() }
      let outcome = try Salvage(source).repair(to: "/repaired")
      #expect(outcome.plan.last == subject.engine.head.lsn)
    },
  ]
}
