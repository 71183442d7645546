/// One crash of a program on a ``SimulatedDisk``: when it came, what it left, and what the program had
/// told by then.
///
/// Its ``description`` is short, and ``CrashTest`` reads it back.
public struct Crash: Sendable, CustomStringConvertible {
  /// What the disk was made from.
  public let seed: UInt64
  /// How many calls the disk had served.
  public let operationCount: Int
  /// What became of the changes that were not synchronized.
  public let state: CrashState
  /// What the program had acknowledged, in its order: ``SimulatedDisk/acknowledge(_:)``.
  public let acknowledged: [String]
  private let point: CrashPoint

  init(seed: UInt64, point: CrashPoint, state: CrashState, acknowledged: [String]) {
    self.seed = seed
    self.operationCount = point.operationCount
    self.state = state
    self.acknowledged = acknowledged
    self.point = point
  }

  /// The disk as the crash left it, a new one for each call.
  ///
  /// - Complexity: O(files); content is shared until written.
  public func disk() -> SimulatedDisk { point.disk(state, seed: seed) }

  /// What was not synchronized when it came, a line for each change with what became of it.
  public var explanation: String {
    zip(point.pendingDescriptions, state.fates).map { "\(CrashState([$1])): \($0)" }
      .joined(separator: "\n")
  }

  /// Seed, number of calls and state, such as `1/57/k,d,t17+`; `-` where there was nothing to lose.
  public var description: String {
    "\(seed)/\(operationCount)/\(state.fates.isEmpty ? "-" : "\(state)")"
  }

  /// The same crash for the one who reads it: the value of `DENDRO_CRASH` makes a ``CrashTest`` run it
  /// alone.
  public var reproduction: String { "DENDRO_CRASH=\(self)" }
}

extension SimulatedDisk {
  /// Every crash that could have come while what was done on this disk was done: after each call that
  /// changed or synchronized something, and before the first, in each state that it could have left.
  ///
  /// What was acknowledged between two such calls had been acknowledged when the crash came: so a fact
  /// that was told too early is noticed if it was told before its disk was asked. ``CrashTest`` does not
  /// depend on who was faster.
  ///
  /// - Parameter enumeration: which states. Default: ``CrashEnumeration/brief``.
  /// - Complexity: of the call, O(length of the trace); the crashes are made as they are asked for.
  public func crashes(
    _ enumeration: CrashEnumeration = .brief
  ) -> some Sequence<Crash> {
    let (base, trace, told) = withState { ($0.base, $0.trace, $0.acknowledged) }
    var point = CrashPoint(base: base)
    var moments = [(point: point, endCount: 0)]
    for operation in trace {
      // Until the next such call the disk stays as this one left it.
      moments[moments.count - 1].endCount = point.operationCount
      point.advance(past: operation)
      if operation.isCrashPoint { moments.append((point, point.operationCount)) }
    }
    moments[moments.count - 1].endCount = .max
    let seed = seed
    return moments.lazy.flatMap { moment in
      let acknowledged = told.prefix { $0.operationCount <= moment.endCount }.map(\.fact)
      return moment.point.states(enumeration).map {
        Crash(seed: seed, point: moment.point, state: $0, acknowledged: acknowledged)
      }
    }
  }

  /// The crashes at the end of what was done.
  func crashesNow(_ enumeration: CrashEnumeration) -> [Crash] {
    let (point, told) = withState { state in
      (CrashPoint(base: state.base, trace: state.trace[...]), state.acknowledged.map(\.fact))
    }
    return point.states(enumeration).map {
      Crash(seed: seed, point: point, state: $0, acknowledged: told)
    }
  }
}

extension CrashPoint {
  /// As ``CrashPoint/forEachState(_:_:)`` goes through them.
  func states(_ enumeration: CrashEnumeration) -> [CrashState] {
    var states: [CrashState] = []
    forEachState(enumeration) { states.append($0) }
    return states
  }
}
