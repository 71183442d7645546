/// One crash of a program on a ``SimulatedDisk``: when it happened, which state it left, and what the
/// program had acknowledged before.
///
/// Its ``description`` is short, and ``CrashTest`` parses it.
public struct Crash: Sendable, CustomStringConvertible {
  /// The seed of the disk.
  public let seed: UInt64
  /// The number of calls that the disk had served.
  public let operationCount: Int
  /// Which of the changes that were not synchronized the crash kept.
  public let state: CrashState
  /// The facts that the program had acknowledged, in order, with ``SimulatedDisk/acknowledge(_:)``.
  public let acknowledged: [String]
  private let point: CrashPoint

  init(seed: UInt64, point: CrashPoint, state: CrashState, acknowledged: [String]) {
    self.seed = seed
    self.operationCount = point.operationCount
    self.state = state
    self.acknowledged = acknowledged
    self.point = point
  }

  /// Returns the disk as the crash left it; a new one for each call.
  ///
  /// - Complexity: O(files); content is shared until written.
  public func disk() -> SimulatedDisk { point.disk(state, seed: seed) }

  /// The changes that were not synchronized, one a line, each with what the crash did to it.
  public var explanation: String {
    zip(point.pendingDescriptions, state.fates).map { "\(CrashState([$1])): \($0)" }
      .joined(separator: "\n")
  }

  /// Seed, number of calls and state, such as `1/57/k,d,t17+`; the state is `-` if all changes were
  /// synchronized.
  public var description: String {
    "\(seed)/\(operationCount)/\(state.fates.isEmpty ? "-" : "\(state)")"
  }

  /// The crash as a setting of `DENDRO_CRASH`, which makes a ``CrashTest`` run only this crash.
  public var reproduction: String { "DENDRO_CRASH=\(self)" }
}

extension SimulatedDisk {
  /// Every crash that could have happened during the calls made on this disk: before the first call and
  /// after each one that changed or synchronized something, in each state that the crash could have left.
  ///
  /// A crash between two such calls includes all facts that were acknowledged between them. So a fact that
  /// was acknowledged too early is noticed if the program acknowledged it before it called the disk.
  /// ``CrashTest`` does not depend on which of the two happened first.
  ///
  /// - Parameter enumeration: the states to enumerate. Default: ``CrashEnumeration/brief``.
  /// - Complexity: O(length of the trace) for the call; the sequence is lazy.
  public func crashes(
    _ enumeration: CrashEnumeration = .brief
  ) -> some Sequence<Crash> {
    let (base, trace, facts) = withState { ($0.base, $0.trace, $0.acknowledged) }
    var point = CrashPoint(base: base)
    var moments = [(point: point, endCount: 0)]
    for operation in trace {
      // The disk does not change until the next such call.
      moments[moments.count - 1].endCount = point.operationCount
      point.advance(past: operation)
      if operation.isCrashPoint { moments.append((point, point.operationCount)) }
    }
    moments[moments.count - 1].endCount = .max
    let seed = seed
    return moments.lazy.flatMap { moment in
      let acknowledged = facts.prefix { $0.operationCount <= moment.endCount }.map(\.fact)
      return moment.point.states(enumeration).map {
        Crash(seed: seed, point: moment.point, state: $0, acknowledged: acknowledged)
      }
    }
  }

  /// The crashes after the last call.
  func crashesNow(_ enumeration: CrashEnumeration) -> [Crash] {
    let (point, facts) = withState { state in
      (CrashPoint(base: state.base, trace: state.trace[...]), state.acknowledged.map(\.fact))
    }
    return point.states(enumeration).map {
      Crash(seed: seed, point: point, state: $0, acknowledged: facts)
    }
  }
}

extension CrashPoint {
  /// The states that ``CrashPoint/forEachState(_:_:)`` enumerates, in its order.
  func states(_ enumeration: CrashEnumeration) -> [CrashState] {
    var states: [CrashState] = []
    forEachState(enumeration) { states.append($0) }
    return states
  }
}
