package import DendroEngine

/// Every sweep by its `id`.
package enum Sweeps {
  /// All that can be made without drawing on anything but the code, each made when asked for.
  private static let makers: [String: @Sendable () throws(EngineError) -> Sweep] = [
    "G1": { CrashStates.sweep },
    "G2": { () throws(EngineError) in try ShortWorkloads.sweep(length: 4) },
    "G3": { RecoveryCrashes.sweep },
    "G4": { () throws(EngineError) in Damage.everyBit(of: try bitDatabase()) },
    "G4-random": { () throws(EngineError) in Damage.randomBits(of: try largeDatabase()) },
    "G5": { Faults.everyCall() },
    "G5-random": { Faults.random },
    "G6": { RecoveryFaults.sweep },
    "G11": { Soak.sweep },
    "G13": { Determinism.sweep },
    "G15": { HostileFiles.sweep },
    "G18": { Histories.sweep },
    "log": { LogCrashes.sweep },
    "kill-then-power-loss": { () throws(EngineError) in try KillsThenPowerLoss.sweep() },
    "full-disk": { FullDisks.sweep },
    "truncation": { () throws(EngineError) in Damage.everyTruncation(of: try smallDatabase()) },
    "missing-file": { () throws(EngineError) in Damage.everyMissingFile(of: try smallDatabase()) },
    "mixes": { () throws(EngineError) in MixedFiles.mixes(of: try Forks()) },
    "splices": { () throws(EngineError) in MixedFiles.splices(of: try Forks()) },
    "lost-seals": { () throws(EngineError) in MixedFiles.lostSeals(of: try Forks()) },
    "openers": { .scenarios("openers", Openers.scenarios) },
    "rules": { .scenarios("rules", Rules.scenarios) },
    "transactions": { .scenarios("transactions", Transactions.scenarios) },
    "promises": { .scenarios("promises", Promises.scenarios) },
    "ends": { .scenarios("ends", Ends.scenarios) },
    "backups": { .scenarios("backups", Backups.scenarios) },
    "moments": { .scenarios("moments", Moments.scenarios) },
    "past": { .scenarios("past", Past.scenarios) },
    "real-files": { .scenarios("real-files", RealFiles.scenarios) },
    "application": { .scenarios("application", Applications.scenarios) },
    "waiting": { .scenarios("waiting", Waiting.scenarios) },
    "listeners": { .scenarios("listeners", Listeners.scenarios) },
    "forgeries": { .scenarios("forgeries", Forgeries.scenarios) },
    "misplaced": { .scenarios("misplaced", MisplacedFiles.scenarios) },
    "seals": { () throws(EngineError) in try Seals.sweep() },
    "strangers": { () throws(EngineError) in MixedFiles.strangers(of: try Forks()) },
    "stranger-checkpoint": { () throws(EngineError) in try MixedFiles.strangerCheckpoint() },
    "damaged-checkpoint": { () throws(EngineError) in try MixedFiles.damagedCheckpoints() },
  ]

  package static var ids: [String] { makers.keys.sorted() }

  /// The sweep of that id; nil if there is none.
  package static func named(_ id: String) throws(EngineError) -> Sweep? {
    guard let make = makers[id] else { return nil }
    return try make()
  }

  /// The database of which every bit is flipped: three segments and a checkpoint, 64 KiB or more.
  package static func bitDatabase() throws(EngineError) -> ClosedDatabase {
    try ClosedDatabase(byteCount: 46_000, writes: 60)
  }

  /// The database of which every byte is cut.
  package static func smallDatabase() throws(EngineError) -> ClosedDatabase {
    try ClosedDatabase(byteCount: 4000, writes: 12)
  }

  /// A database too large to flip every bit of.
  package static func largeDatabase() throws(EngineError) -> ClosedDatabase {
    try ClosedDatabase(byteCount: 180_000, writes: 400)
  }
}
