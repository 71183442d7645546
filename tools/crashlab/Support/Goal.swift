/// A reliability goal: what is counted, and how much of it a submission and a release ask for.
struct Goal: Sendable {
  var id: String
  var what: String
  var unit: String
  var submission: Int
  var soak: Int

  static let crashStates = Goal(
    id: "G1", what: "crash states recovered", unit: "states",
    submission: 1_000_000, soak: 50_000_000)
  static let shortWorkloads = Goal(
    id: "G2", what: "short workloads exhausted", unit: "workloads", submission: 516, soak: 3108)
  static let recoveryCrashes = Goal(
    id: "G3", what: "crashes inside recovery", unit: "states",
    submission: 200_000, soak: 5_000_000)
  static let bitFlips = Goal(
    id: "G4", what: "every bit flipped", unit: "bit flips", submission: 524_288, soak: 524_288)
  static let randomBitFlips = Goal(
    id: "G4", what: "random bits of a larger database", unit: "bit flips",
    submission: 0, soak: 10_000_000)
  static let faults = Goal(
    id: "G5", what: "every call × every failure", unit: "runs", submission: 8000, soak: 8000)
  static let randomFaults = Goal(
    id: "G5", what: "failures in random workloads", unit: "runs", submission: 8000, soak: 100_000)
  static let recoveryFaults = Goal(
    id: "G6", what: "failures while recovering", unit: "runs", submission: 2000, soak: 100_000)
  static let kills = Goal(
    id: "G7", what: "processes killed", unit: "kills", submission: 1000, soak: 20_000)
  static let powerCuts = Goal(
    id: "G8", what: "power cuts on real file systems", unit: "cuts", submission: 100, soak: 3000)
  static let fullDisks = Goal(
    id: "G9", what: "real disks full at each step", unit: "steps", submission: 256, soak: 4096)
  static let fuzzing = Goal(
    id: "G10", what: "fuzz executions over all targets", unit: "executions",
    submission: 5_000_000, soak: 200_000_000)
  static let soak = Goal(
    id: "G11", what: "random operations with listeners", unit: "operations",
    submission: 1_000_000, soak: 100_000_000)
  static let determinism = Goal(
    id: "G13", what: "the same seed twice", unit: "seeds", submission: 1000, soak: 20_000)
  static let hostileFiles = Goal(
    id: "G15", what: "hostile directories in 512 MB", unit: "directories",
    submission: 20_000, soak: 1_000_000)
  static let histories = Goal(
    id: "G18", what: "concurrent calls in one order", unit: "histories",
    submission: 10_000, soak: 1_000_000)
}
