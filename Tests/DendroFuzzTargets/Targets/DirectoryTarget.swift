import DendroCrashHarness
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

extension FuzzTarget {
  /// A directory; see `FileArchive`.
  static let directory = FuzzTarget(
    "directory", "whole directories: recovery, its repair, and going on behind it", weight: 10,
    seeds: {
      try SeedDatabases.all().flatMap { files in
        [false, true].map { FileArchive(files, isMended: $0).encoded }
      }
    },
    body: { bytes in
      let files = FileArchive(bytes).contents
      let disk = try FuzzDisk.make(files)
      try SegmentReading.compare(disk)
      let seen = open(disk.copy(), .readOnly).map { ($0.head.root, $0.head.lsn) }
      let writable = disk.copy()
      guard let engine = open(writable, .readWriteExisting) else { return }
      let (root, lsn) = engine.head
      try WriteComparison.checkInvariants(root, "the recovered tree")
      try require(root.height() <= Limits.depth, "the tree is \(root.height()) levels high")
      if let seen {
        try require(
          seen.0 == root && seen.1 == lsn,
          "a reader sees write \(seen.1), the writer continues from write \(lsn)")
      }
      try goOn(engine, writable)
    })

  private static func open(_ disk: SimulatedDisk, _ mode: Engine.Mode) -> Engine? {
    attempt { () throws(EngineError) in
      try Engine.open(
        at: FuzzDisk.directory, options: fuzzOptions, environment: disk.environment, mode: mode)
    }
  }

  /// What is served can be written on, kept as a checkpoint, and found again.
  private static func goOn(_ engine: Engine, _ disk: SimulatedDisk) throws {
    do throws(EngineError) {
      let session = DendroCrashHarness.Session(engine, disk)
      session.submit(.set(Path("after"), Node(.bool(true))), expecting: nil)
      engine.pump()
      for answer in session.takeAnswers() { _ = try answer.result.get() }
      try engine.checkpoint()
      let expected = engine.head.root
      try engine.close()
      let again = try Engine.open(
        at: FuzzDisk.directory, options: fuzzOptions, environment: disk.environment,
        mode: .readOnly)
      guard again.head.root == expected else {
        throw .storage(.notFound(path: "the tree that was closed"))
      }
    } catch {
      // The numbers of writes end somewhere, and a hostile log may begin there.
      if case .storage(.limit) = error { return }
      throw FuzzFinding("it is served, but then: \(error)")
    }
  }
}
