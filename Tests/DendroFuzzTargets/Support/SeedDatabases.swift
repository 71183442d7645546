import DendroCrashHarness
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// Small databases that the seeds are made of: their files, by name.
enum SeedDatabases {
  /// Right ones, of a few kilobytes at most: closed and crashed, with and without checkpoints.
  static func all() throws -> [[(name: String, bytes: [UInt8])]] {
    var databases: [[(name: String, bytes: [UInt8])]] = []
    for seed in UInt64(0)..<60 {
      var generator = StepGenerator(seed: seed)
      let steps = generator.steps(3 + Int(seed % 6), kills: false)
      let recording = try EngineRecording(seed: seed, steps: steps)
      let disk =
        seed % 5 == 0
        ? recording.points[recording.points.count * 2 / 3].disk(CrashState([])) : recording.disk
      let files = files(of: disk)
      let byteCount = files.reduce(0) { $0 + $1.bytes.count }
      if byteCount < 3000, !files.isEmpty { databases.append(files) }
    }
    return databases
  }

  static func files(of disk: SimulatedDisk) -> [(name: String, bytes: [UInt8])] {
    disk.names(in: EngineRecording.directory).map { name in
      (name, disk.contents(of: "\(EngineRecording.directory)/\(name)") ?? [])
    }
  }
}
