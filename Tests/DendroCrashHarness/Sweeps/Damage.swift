import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// Files that read differently from what was written: flipped bits, lost ends, lost files.
package enum Damage {
  /// G4: every single bit of a database, flipped. It is refused with the file and the offset, or it
  /// does no harm; never is a wrong tree served.
  ///
  /// Each job is 4,096 bits of one file, of which every `stride`-th is flipped.
  package static func everyBit(of database: ClosedDatabase, stride: Int = 1) -> Sweep {
    var chunks: [(path: String, bits: StrideTo<Int>)] = []
    for (path, byteCount) in database.files {
      for start in Swift.stride(from: 0, to: byteCount * 8, by: 4096) {
        let end = min(byteCount * 8, start + 4096)
        chunks.append((path, Swift.stride(from: start, to: end, by: stride)))
      }
    }
    let jobs = chunks
    return Sweep("G4", unit: "bit flips", jobs: 0..<UInt64(jobs.count)) { place in
      let (path, bits) = jobs[Int(place.job)]
      var tally = Tally()
      for bit in bits where !tally.isHopeless { flip([bit], of: path, database, place, &tally) }
      return tally
    }
  }

  /// G4 beyond what can be listed: each job flips one bit, or a few, of a larger database, 256 times.
  package static func randomBits(of database: ClosedDatabase) -> Sweep {
    Sweep("G4-random", name: "G4, random", unit: "bit flips") { place in
      let random = SeededRandomness(seed: place.job)
      var tally = Tally()
      var draws = random
      for _ in 0..<256 where !tally.isHopeless {
        // As often as they have bytes.
        var byte = Int.random(in: 0..<database.byteCount, using: &draws)
        let file = database.files.first { file in
          if byte < file.byteCount { return true }
          byte -= file.byteCount
          return false
        }!
        let count = Int.random(in: 0..<4, using: &draws) == 0 ? 3 : 1
        let bits = Set(
          (0..<count).map { _ in
            min(file.byteCount - 1, byte + Int.random(in: 0..<40, using: &draws)) * 8
              + Int.random(in: 0..<8, using: &draws)
          })
        flip(bits.sorted(), of: file.path, database, place, &tally)
      }
      return tally
    }
  }

  private static func flip(
    _ bits: [Int], of path: String, _ database: ClosedDatabase, _ place: Reproduction,
    _ tally: inout Tally
  ) {
    let disk = database.disk.copy()
    for bit in bits { disk.flipBit(bit, of: path) }
    tally.count += 1
    switch database.outcome(disk) {
    case .harmless: tally.details["harmless", default: 0] += 1
    case .refused: tally.details["refused", default: 0] += 1
    case .undecidable where bits.count > 1: tally.details["undecidable", default: 0] += 1
    case .undecidable:
      tally.fail(
        place, "bits \(bits) of \(path) flipped: the last write is reported as undecidable")
    case .wrong(let problem):
      tally.fail(place, "bits \(bits) (byte \(bits[0] / 8)) of \(path) flipped: \(problem)")
    }
  }

  /// A file that lost its end shows a tree that once was, or is refused. A job for each size.
  package static func everyTruncation(of database: ClosedDatabase) -> Sweep {
    let cuts = database.files.flatMap { file in
      (0..<file.byteCount).map { (path: file.path, size: $0) }
    }
    return Sweep("truncation", unit: "truncations", jobs: 0..<UInt64(cuts.count)) { place in
      let (path, size) = cuts[Int(place.job)]
      let disk = database.disk.copy()
      disk.resize(path, to: size)
      var tally = Tally(count: 1)
      do throws(EngineError) {
        let root = try EngineRecording.open(disk).head.root
        if !database.trees.contains(where: { $0 == root }) {
          tally.fail(place, "\(path) cut to \(size) bytes: a tree that never was")
        }
      } catch {
        if error.isDamage { return tally }
        tally.fail(place, "\(path) cut to \(size) bytes: refused as \(error)")
      }
      return tally
    }
  }

  /// Any missing file does no harm or is noticed, a segment that the newest checkpoint does not
  /// make up for always: the last one too. A job for each file.
  package static func everyMissingFile(of database: ClosedDatabase) -> Sweep {
    let last = database.files.map(\.path).filter { $0.hasSuffix(".log") }.max()
    return Sweep(
      "missing-file", name: "missing file", unit: "files", jobs: 0..<UInt64(database.files.count)
    ) { place in
      let path = database.files[Int(place.job)].path
      let disk = database.disk.copy()
      disk.erase(path)
      var tally = Tally(count: 1)
      switch database.outcome(disk) {
      case .harmless:
        if path == last { tally.fail(place, "the loss of \(path) goes unnoticed") }
      case .refused:
        if !path.hasSuffix(".log") { tally.fail(place, "refused without \(path)") }
      case .undecidable:
        tally.fail(place, "without \(path): the last write is reported as undecidable")
      case .wrong(let problem): tally.fail(place, "without \(path): \(problem)")
      }
      return tally
    }
  }
}
