import DendroEngine
import DendroTesting
import DendroTree

/// A simulated disk that is too small, at every size: what does not fit is refused and not half
/// there, reads work, and once there is room writes do too, without reopening.
package enum FullDisks {
  private static let sizes = Array(0..<120) + stride(from: 120, to: 200_000, by: 512)

  /// A job for each size.
  package static let sweep = Sweep(
    "full-disk", name: "full disk", unit: "sizes", jobs: 0..<UInt64(sizes.count), judge: judge)

  /// More than what is preallocated at first, and not to be compressed.
  private static let large: [Step] = {
    var random = SeededRandomness(seed: 8)
    return (0..<8).map { index in
      let text = String(
        (0..<12_000).map { _ in
          Character(Unicode.Scalar(UInt8.random(in: 0x21...0x7e, using: &random)))
        })
      return .set("large/\(index)", .string(text))
    }
  }()

  private static func judge(_ place: Reproduction) -> Tally {
    let size = sizes[Int(place.job)]
    var tally = Tally(count: 1)
    let disk = SimulatedDisk(seed: 6)
    var run = FaultedRun(disk)
    run.run([.set("first", .integer(1))])
    disk.freeSpace = size
    let open = Faults.workload.filter { if case .close = $0 { false } else { true } }
    run.run(open + large + [.checkpoint] + open)
    if run.isPoisoned { tally.fail(place, "room for \(size) bytes: poisoned") }
    let refused = run.refusedCount
    disk.freeSpace = nil
    // The first one may still be refused: it is what looks for room.
    run.run([.set("look", .integer(1)), .set("for", .integer(2)), .set("room", .integer(3))])
    if run.refusedCount > refused + 1 {
      tally.fail(place, "room for \(size) bytes: refused when there was room again")
    }
    run.run([.checkpoint, .set("z", .integer(4)), .close])
    if !run.reopen() { tally.fail(place, "room for \(size) bytes: not reopened") }
    for problem in run.problems { tally.fail(place, "room for \(size) bytes: \(problem)") }
    tally.details["refusals", default: 0] += refused
    return tally
  }
}
