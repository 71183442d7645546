private import DendroPlatform

/// Runs a program again and again, each time with a disk that loses its power one call later, and lets
/// every disk be judged that this could have left.
///
/// ```swift
/// try await CrashTest(seed: 1).run { disk in
///   let signUps = SignUps(try Database.open(at: "/users", on: disk))
///   for name in ["ada", "grace", "edsger"] {
///     try await signUps.add(name)
///     disk.acknowledge(name)
///   }
/// } check: { crash in
///   let signUps = SignUps(try Database.open(at: "/users", on: crash.disk()))
///   let names = try await signUps.names()
///   for name in crash.acknowledged { try #require(names.contains(name)) }
/// }
/// ```
///
/// The test always finds a program that answers its user before the disk has answered the program: the
/// power fails before the disk answers, so the check sees an acknowledged fact that was lost.
///
/// **One crash again.** A failure names its crash, such as `1/57/k,d`: seed, calls, state. With
/// `DENDRO_CRASH=1/57/k,d` in the environment every crash test of the process runs that crash alone and
/// prints what led to it; `DENDRO_CRASH=1/57` is every state after these calls. The same calls lead to it
/// as long as the program makes them in the same order, which programs of one task do; if several race,
/// it may take several tries.
public struct CrashTest: Sendable {
  /// What the disks are made from: ids and salts of a database on them, and random states.
  public var seed: UInt64
  /// Which states a crash can leave. Default: ``CrashEnumeration/brief``.
  public var enumeration = CrashEnumeration.brief

  /// A test whose disks start from `seed`.
  public init(seed: UInt64) { self.seed = seed }

  /// What ``run(_:check:)`` throws when a check does not hold.
  public struct Failure: Error, CustomStringConvertible {
    /// Where it does not hold.
    public let crash: Crash
    /// What the check threw.
    public let underlyingError: any Error

    /// How to run the crash alone, and the error.
    public var description: String {
      "after a crash, which `\(crash.reproduction) swift test --filter …` runs alone: \(underlyingError)"
    }
  }

  /// `DENDRO_CRASH` is no crash.
  public struct UnreadableCrash: Error, CustomStringConvertible {
    /// The variable's value.
    public let text: String

    /// Says what would be one.
    public var description: String {
      "DENDRO_CRASH is \"\(text)\"; a crash is seed/calls or seed/calls/state, as in 1/57/k,d"
    }
  }

  /// Runs `program` on disks that are disconnected after 0, 1, 2, … calls, up to the first run that gets
  /// to its end, and calls `check` with every crash that can come then.
  ///
  /// - Parameters:
  ///   - program: the program under test. It opens its database on the disk, works, and calls
  ///     ``SimulatedDisk/acknowledge(_:)`` wherever it would answer a user. After its disk is disconnected
  ///     it must end, and release or close what it opened; errors that it throws then are ignored.
  ///   - check: opens what is there and throws if something acknowledged is missing. Opening must
  ///     succeed, too: what it throws counts.
  /// - Returns: how many crashes were judged.
  /// - Throws: ``Failure`` with the first crash for which `check` throws; what `program` throws while its
  ///   disk works; ``UnreadableCrash``.
  /// - Complexity: the square of the number of calls, times the states at each.
  @discardableResult
  public func run(
    _ program: (SimulatedDisk) async throws -> Void, check: (Crash) async throws -> Void
  ) async throws -> Int {
    if let text = Self.environment("DENDRO_CRASH") {
      guard let wanted = Reproduction(text) else { throw UnreadableCrash(text: text) }
      return try await run(only: wanted, program, check: check)
    }
    var crashCount = 0
    var callCount = 0
    while true {
      let disk = SimulatedDisk(seed: seed)
      let isWhole = try await Self.run(program, on: disk, callCount: callCount)
      for crash in disk.crashesNow(enumeration) {
        try await Self.judge(crash, check)
        crashCount += 1
      }
      if isWhole { return crashCount }
      callCount += 1
    }
  }

  /// - Returns: whether the disk was there to the end.
  private static func run(
    _ program: (SimulatedDisk) async throws -> Void, on disk: SimulatedDisk, callCount: Int
  ) async throws -> Bool {
    disk.disconnect(after: callCount)
    do {
      try await program(disk)
    } catch {
      guard disk.isDisconnected else { throw error }
    }
    defer { disk.disconnect() }
    return !disk.isDisconnected
  }

  private static func judge(
    _ crash: Crash, _ check: (Crash) async throws -> Void
  ) async throws {
    do {
      try await check(crash)
    } catch {
      throw Failure(crash: crash, underlyingError: error)
    }
  }

  // MARK: One crash again

  /// The crash that is wanted, or all states after its calls, whatever the seed of this test.
  package func run(
    only wanted: Reproduction, _ program: (SimulatedDisk) async throws -> Void,
    check: (Crash) async throws -> Void
  ) async throws -> Int {
    let disk = SimulatedDisk(seed: wanted.seed)
    _ = try await Self.run(program, on: disk, callCount: wanted.operationCount)
    var crashes = disk.crashesNow(enumeration)
    if let state = wanted.state {
      let point = disk.crashPoint()
      crashes = [
        Crash(seed: wanted.seed, point: point, state: state, acknowledged: disk.acknowledged)
      ]
    }
    for (number, operation) in disk.trace.enumerated() { print("\(number + 1). \(operation)") }
    print("acknowledged: \(disk.acknowledged)")
    for crash in crashes {
      print("crash \(crash)\n\(crash.explanation)")
      try await Self.judge(crash, check)
    }
    return crashes.count
  }

  private static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }
}

extension CrashTest {
  /// A ``Crash/description``, or one without a state: all of them.
  package struct Reproduction: Sendable {
    package var seed: UInt64
    package var operationCount: Int
    package var state: CrashState?

    package init?(_ text: String) {
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2 || parts.count == 3, let seed = UInt64(parts[0]),
        let count = Int(parts[1]), count >= 0
      else { return nil }
      self.seed = seed
      operationCount = count
      guard parts.count == 3 else { return }
      guard let state = parts[2] == "-" ? CrashState([]) : CrashState(String(parts[2])) else {
        return nil
      }
      self.state = state
    }
  }
}
