import DendroCrashHarness
import DendroEngine
import Foundation

/// `crashlab full`: a real disk in memory, with room for 0, 1, 2, … up to 255 pages of 4 KiB, while a
/// database appends and while it writes a checkpoint; then there is room again, and writing continues.
enum FullCommand {
  static let pageByteCount = 4096
  static let stepCount = 256
  /// Enough for the database and a checkpoint of it once the ballast is gone.
  static let diskByteCount = 4 << 20

  static func run(_ options: LabOptions) -> [LabReport.Row] {
    var row = LabReport.Row(
      goal: Goal.fullDisks.id, what: Goal.fullDisks.what, unit: Goal.fullDisks.unit, count: 0,
      wanted: options.wanted(.fullDisks), seconds: 0)
    if let problem = Namespace.problem {
      row.notRun = problem
      return [row]
    }
    let place: WorkingDirectory
    do {
      place = try WorkingDirectory(nil)
      try SystemTool.run(
        "mount", "-t", "tmpfs", "-o", "size=\(diskByteCount),mode=700", "crashlab", place.path)
    } catch {
      row.notRun = "\(error)"
      return [row]
    }
    defer {
      // Its own namespace would see to it too.
      try? SystemTool.run("umount", "--lazy", place.path)
      place.removeIfTemporary()
    }
    let deadline = options.minutes.map { ContinuousClock.now + .seconds($0 * 60) }
    let total = options.count ?? (deadline == nil ? options.wanted(.fullDisks) : .max)
    let progress = LabProgress(
      "G9", unit: "steps", total: total == .max ? nil : total, deadline: deadline)
    while row.count < total, row.failures.isEmpty, !Interruption.isRequested,
      deadline.map({ ContinuousClock.now < $0 }) ?? true
    {
      // The first round has a seed of its own for each step, as every other one.
      let index = row.count
      let seed = options.seed &+ UInt64(index / stepCount)
      for isCheckpoint in [false, true] {
        var run = FullRun(
          folder: place.path, pageCount: index % stepCount, seed: seed,
          isCheckpoint: isCheckpoint)
        run.run()
        for (name, count) in run.details { row.details[name, default: 0] += count }
        row.failures += run.problems.map {
          LabReport.Failure(
            problem:
              "room for \(index % stepCount) pages, \(isCheckpoint ? "checkpoint" : "append"): \($0)",
            command: "crashlab full --seed \(options.seed) --count \(index + 1)")
        }
      }
      row.count += 1
      progress.update(row.count)
    }
    progress.clear()
    row.seconds = progress.seconds
    return [row]
  }
}
