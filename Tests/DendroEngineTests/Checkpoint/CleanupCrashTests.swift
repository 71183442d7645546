import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Testing

@Suite("A power loss during a cleanup")
struct CleanupCrashTests {
  /// What `dendro verify` relies on: if it does not hold, a segment is missing.
  @Test(
    "leaves the log that the older of the last two checkpoints needs", arguments: [false, true])
  func reach(purges: Bool) throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    for number in 1...5 {
      engine.submit(try set("a", .integer(Int64(number))), completion: nil)
      engine.pump()
      if number == 5, purges { try engine.purgeHistory() } else { try engine.checkpoint() }
    }
    var cleanedStateCount = 0
    for point in disk.crashPoints() {
      point.forEachState(.brief) { state in
        let names = point.disk(state).names(in: "/db").sorted()
        func numbers(_ suffix: String) -> [UInt64] {
          names.filter { $0.hasSuffix(suffix) }.compactMap { UInt64($0.dropLast(suffix.count)) }
        }
        let checkpoints = numbers(".checkpoint")
        guard let older = checkpoints.dropLast().last, let first = numbers(".log").first
        else { return }
        if first > 1 { cleanedStateCount += 1 }
        #expect(first <= older + 1, "\(point.operationCount) operations, \(state): \(names)")
      }
    }
    #expect(cleanedStateCount > 0)
  }
}
