import DendroCrashHarness
import DendroTesting
import Foundation
import Synchronization

/// Every verb of `dendro` on hostile directories: each ends with one of its exit codes, never by a
/// signal, and soon.
enum HostileVerbs {
  /// As the manual of `dendro` lists them.
  private static let exitCodes: Set<Int32> = [0, 1, 2, 64, 65, 69, 74, 75]
  private static let timeMax = Duration.seconds(60)

  /// The words of a call; DIR stands for the directory, FILE for a hostile file, NEW, ARCHIVE, RESTORED and OLD
  /// for places where nothing is.
  private static let calls: [[String]] = [
    ["info", "DIR"], ["info", "DIR", "--json"], ["verify", "DIR"], ["verify", "DIR", "--json"],
    ["get", "DIR", "/"], ["get", "DIR", "/posts/p1", "--export"], ["log", "DIR"],
    ["log", "DIR", "--records", "--json"], ["export", "DIR", "/"],
    ["watch", "DIR", "/", "--count", "1", "--interval", "10"], ["backup", "DIR", "NEW"],
    ["backup", "DIR", "ARCHIVE", "--incremental"], ["restore", "ARCHIVE", "RESTORED"],
    ["restore", "DIR", "OLD", "--at", "2"], ["dump", "DIR", "checkpoint"],
    ["dump", "DIR", "checkpoint:0", "--json"],
    ["import", "DIR", "/imported", "FILE", "--force"], ["set", "DIR", "/a", "1"],
    ["update", "DIR", "/", "{\"b\":2}"], ["push", "DIR", "/list", "3"],
    ["increment", "DIR", "/n", "1"], ["remove", "DIR", "/a", "--force"], ["checkpoint", "DIR"],
    ["verify", "DIR"],
  ]

  static func run(
    _ options: LabOptions, directoryCount: Int, until deadline: ContinuousClock.Instant?
  ) -> [LabReport.Row] {
    var row = LabReport.Row(
      goal: Goal.hostileFiles.id, what: "every dendro verb on such directories", unit: "calls",
      count: 0, seconds: 0)
    let executable =
      URL(fileURLWithPath: ChildProcess.ownExecutable).deletingLastPathComponent().path + "/dendro"
    guard FileManager.default.isExecutableFile(atPath: executable) else {
      row.notRun = "\(executable) is missing: swift build --product dendro"
      return [row]
    }
    let place: WorkingDirectory
    do {
      place = try WorkingDirectory(nil)
    } catch {
      row.notRun = "no working directory: \(error)"
      return [row]
    }
    defer { place.removeIfTemporary() }
    let progress = LabProgress(
      "G15, verbs", unit: "calls", total: directoryCount * calls.count)
    let board = Mutex((next: 0, row: row))
    Lanes.run(2 * ProcessInfo.processInfo.activeProcessorCount) {
      while true {
        let next = board.withLock { board -> Int? in
          guard board.next < directoryCount, board.row.failures.count < 5,
            board.row.notRun == nil, !Interruption.isRequested,
            deadline.map({ ContinuousClock.now < $0 }) ?? true
          else { return nil }
          defer { board.next += 1 }
          return board.next
        }
        guard let next else { return }
        let seed = options.seed + UInt64(next)
        let found = call(executable, seed, in: "\(place.path)/\(next)")
        let count = board.withLock { board in
          board.row.count += calls.count
          board.row.failures += found.failures
          board.row.details.merge(found.exits, uniquingKeysWith: +)
          return board.row.count
        }
        progress.update(count)
      }
    }
    progress.clear()
    var result = board.withLock { $0.row }
    result.seconds = progress.seconds
    return [result]
  }

  private static func call(_ executable: String, _ seed: UInt64, in folder: String)
    -> (failures: [LabReport.Failure], exits: [String: Int])
  {
    var failures: [LabReport.Failure] = []
    var exits: [String: Int] = [:]
    func fail(_ problem: String) {
      failures.append(
        LabReport.Failure(
          problem: "directory \(seed): \(problem)",
          command: "crashlab hostile --seed \(seed) --count 1"))
    }
    defer { try? FileManager.default.removeItem(atPath: folder) }
    do {
      try write(HostileFiles.directory(seed).disk, to: "\(folder)/database")
      let random = SeededRandomness(seed: seed)
      let bytes = (0..<Int(random.next() % 2000)).map { _ in
        UInt8(truncatingIfNeeded: random.next())
      }
      let text = seed % 2 == 0 ? Data(bytes) : Data("{\"a\":[[[{\"b\":".utf8) + Data(bytes)
      try text.write(to: URL(fileURLWithPath: "\(folder)/file.json"))
    } catch {
      fail("it cannot be written: \(error)")
      return (failures, exits)
    }
    for call in calls {
      let words = call.map { word in
        switch word {
        case "DIR": "\(folder)/database"
        case "FILE": "\(folder)/file.json"
        case "NEW": "\(folder)/backup"
        case "ARCHIVE", "RESTORED", "OLD": "\(folder)/\(word)"
        default: word
        }
      }
      do {
        let child = try LimitedProcess.start(executable, words)
        let started = ContinuousClock.now
        var isStopped = false
        while !child.isComplete {
          usleep(500)
          let elapsed = ContinuousClock.now - started
          // A watcher waits for a change that does not come.
          if call[0] == "watch", elapsed > .milliseconds(300), !isStopped {
            isStopped = true
            _ = Foundation.kill(child.pid, SIGTERM)
          }
          if elapsed > timeMax {
            child.kill()
            fail("dendro \(call.joined(separator: " ")) hangs")
          }
        }
        let end = child.wait().end
        switch end {
        case _ where Interruption.explains(end): return (failures, exits)
        case .exit(let code) where exitCodes.contains(code) || (isStopped && code == 128 + SIGTERM):
          exits["exit \(code)", default: 0] += 1
        case .signal(SIGTERM) where isStopped: exits["stopped", default: 0] += 1
        default:
          if ContinuousClock.now - started <= timeMax {
            fail("dendro \(call.joined(separator: " ")): \(end): \(child.lastWords)")
          }
        }
      } catch {
        fail("\(error)")
      }
    }
    return (failures, exits)
  }

  private static func write(_ disk: SimulatedDisk, to folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for name in disk.names(in: EngineRecording.directory) {
      guard let bytes = disk.contents(of: EngineRecording.directory + "/" + name) else { continue }
      try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
    }
  }
}
