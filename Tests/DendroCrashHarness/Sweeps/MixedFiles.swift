package import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// Files that do not belong together: what a careless copy or restore leaves.
package enum MixedFiles {
  /// A job for each choice of whose each segment is. Served are at most those that are wholly of
  /// one fork, whatever the files that both have in common.
  package static func mixes(of forks: Forks) -> Sweep {
    let names = forks.names
    let last = UInt64(1) << UInt64(names.count) - 1
    return Sweep("mixes", unit: "directories", jobs: 0..<last + 1) { place in
      var tally = Tally()
      let disk = forks.a.disk.copy()
      var mixed = false
      // The first segment was closed before the two parted.
      let second = place.job & 0b10 != 0
      for (index, name) in names.enumerated() {
        let isOther = place.job >> UInt64(index) & 1 == 1
        if isOther { disk.replace(Forks.path(name), with: forks.bytes(forks.b, name)) }
        if index > 0, isOther != second { mixed = true }
      }
      let isServed = forks.isServed(disk, "mix \(String(place.job, radix: 2))", place, &tally)
      if isServed == mixed, tally.failures.isEmpty {
        tally.fail(place, "mix \(String(place.job, radix: 2)): \(mixed ? "served" : "refused")")
      }
      return tally
    }
  }

  /// The beginning of one fork's segment with the end of the other's, at every byte: a job each. The
  /// later segments are of the one or of the other.
  package static func splices(of forks: Forks) -> Sweep {
    let path = Forks.path(forks.names[1])
    let one = forks.bytes(forks.a, forks.names[1])
    let other = forks.bytes(forks.b, forks.names[1])
    precondition(one.count == other.count, "the forks' segments are of other lengths")
    return Sweep("splices", unit: "directories", jobs: 0..<UInt64(other.count)) { job in
      var tally = Tally()
      let place = Int(job.job)
      let disk = forks.a.disk.copy()
      disk.overwrite(path, at: place, with: Array(other[place...]))
      _ = forks.isServed(disk, "spliced at \(place)", job, &tally)
      let second = forks.b.disk.copy()
      second.overwrite(path, at: 0, with: Array(one[..<place]))
      _ = forks.isServed(second, "spliced at \(place), with the later segments", job, &tally)
      return tally
    }
  }

  /// Without its seal a segment is held against its successor: another fork's does not confirm it. A
  /// job for each number of bytes that are lost.
  package static func lostSeals(of forks: Forks) -> Sweep {
    /// A seal takes 28 bytes; more is a part of the last record.
    let sealByteCount = 28
    let path = Forks.path(forks.names[1])
    let size = forks.bytes(forks.a, forks.names[1]).count
    return Sweep(
      "lost-seals", name: "lost seals", unit: "directories",
      jobs: 1..<UInt64(min(60, size - 64) + 1)
    ) { job in
      var tally = Tally()
      let cut = Int(job.job)
      let own = forks.a.disk.copy()
      own.resize(path, to: size - cut)
      if cut <= sealByteCount,
        !forks.isServed(own, "a seal lost alone, \(cut) bytes", job, &tally)
      {
        tally.fail(job, "a seal lost alone, \(cut) bytes: refused")
      }
      let disk = forks.a.disk.copy()
      disk.resize(path, to: size - cut)
      for name in forks.names[2...] {
        disk.replace(Forks.path(name), with: forks.bytes(forks.b, name))
      }
      if forks.isServed(disk, "\(cut) bytes cut, and the other's segments", job, &tally) {
        tally.fail(job, "\(cut) bytes cut, and the other's segments: served")
      }
      return tally
    }
  }

  /// A segment of a database that has nothing to do with this one: a job for each name.
  package static func strangers(of forks: Forks) -> Sweep {
    let names = Forks.names(forks.stranger.disk).filter(forks.names.contains)
    return Sweep("strangers", unit: "directories", jobs: 0..<UInt64(names.count)) { place in
      var tally = Tally()
      let name = names[Int(place.job)]
      let disk = forks.a.disk.copy()
      disk.replace(Forks.path(name), with: forks.bytes(forks.stranger, name))
      if forks.isServed(disk, "\(name) of another database", place, &tally) {
        tally.fail(place, "\(name) of another database: served")
      }
      return tally
    }
  }

  /// A checkpoint of a database that has nothing to do with this one, for the same write: one job.
  package static func strangerCheckpoint() throws(EngineError) -> Sweep {
    let steps: [Step] = [.set("a", .integer(1)), .checkpoint, .set("b", .integer(2))]
    let own = try EngineRecording(seed: 21, steps: steps)
    let stranger = try EngineRecording(seed: 99, steps: steps)
    return Sweep(
      "stranger-checkpoint", name: "stranger's checkpoint", unit: "directories", jobs: 0..<1
    ) { place in
      var tally = Tally(count: 1)
      let names = own.disk.names(in: EngineRecording.directory)
      guard let name = names.first(where: { $0.hasSuffix(".checkpoint") }),
        let bytes = stranger.disk.contents(of: Forks.path(name))
      else {
        tally.fail(place, "there is no checkpoint of that name")
        return tally
      }
      let disk = own.disk.copy()
      disk.replace(Forks.path(name), with: bytes)
      do throws(EngineError) {
        // It is passed over and named, and the log from its beginning on serves.
        let engine = try EngineRecording.open(disk)
        if engine.head.root != own.trees.last || engine.report.unreadableCheckpoints.count != 1 {
          tally.fail(place, "a checkpoint of another database was taken")
        }
      } catch {
        tally.fail(place, "\(error)")
      }
      return tally
    }
  }

  /// Two checkpoints are kept and the log back to the older one, so that any damage to the newest
  /// can be made up for; the report names it. A job for each bit.
  package static func damagedCheckpoints() throws(EngineError) -> Sweep {
    let recording = try EngineRecording(
      seed: 3,
      steps: (0..<4).flatMap { index -> [Step] in
        [
          .set("a/\(index)", .string("value \(index)")), .checkpoint,
          .set("n", .integer(Int64(index))),
        ]
      })
    let checkpoints = recording.disk.names(in: EngineRecording.directory)
      .filter { $0.hasSuffix(".checkpoint") }
    guard checkpoints.count == 2 else {
      return .scenarios(
        "damaged-checkpoint",
        [Scenario("two are kept") { throw Violation("there are \(checkpoints)") }])
    }
    let path = Forks.path(checkpoints[1])
    let bytes = recording.disk.contents(of: path) ?? []
    let size = bytes.count
    let index = bytes[(size - 56)..<(size - 48)].reversed().reduce(0) { $0 << 8 | Int($1) }
    // The file's header and the first chunk's, the index's, the footer.
    let fixed = Set(0..<96).union(index..<index + 32).union((size - 64)..<size)
    return Sweep(
      "damaged-checkpoint", name: "damaged checkpoint", unit: "bit flips",
      jobs: 0..<UInt64(size * 8)
    ) { place in
      var tally = Tally(count: 1)
      let disk = recording.disk.copy()
      disk.flipBit(Int(place.job), of: path)
      do throws(EngineError) {
        let engine = try EngineRecording.open(disk)
        if engine.head.root != recording.trees.last {
          tally.fail(place, "bit \(place.job) flipped: another tree")
        }
        switch engine.report.unreadableCheckpoints.count {
        // A block may say the same in two ways; headers and the footer may not.
        case 0 where fixed.contains(Int(place.job) / 8):
          tally.fail(place, "bit \(place.job) flipped: it went unnoticed")
        case 0: tally.details["harmless", default: 0] += 1
        case 1: tally.details["the older one served", default: 0] += 1
        case let count: tally.fail(place, "\(count) checkpoints were not readable")
        }
      } catch {
        tally.fail(place, "bit \(place.job) flipped: \(error)")
      }
      return tally
    }
  }
}
