/// The states that ``CrashPoint/forEachState(_:_:)`` enumerates.
public struct CrashEnumeration: Sendable {
  /// Every subset is enumerated of up to this many changes or sectors; of more, random subsets.
  public var subsetLimit = 10
  /// The number of random subsets if there are too many changes or sectors for all subsets.
  public var sampleCount = 64
  /// The sizes in bytes of the sectors that the disk writes atomically.
  public var sectorSizes = [512, 4096]
  /// The last write is torn at every multiple of this number of bytes; 1 is every byte.
  public var tornByteStride = 1
  /// The possible contents in place of the part that was torn off.
  public var rests: [CrashState.Rest] = [.absent, .extended, .garbage(seed: 1)]
  /// Leaves out the states in which the last change is dropped as a whole: they are the same disks
  /// as those of an earlier point.
  public var onlyNew = false
  /// The seed of random choices.
  public var seed: UInt64 = 0

  /// The defaults, which enumerate as many states as is practical.
  public init() {}

  /// A few dozen states at each point, for programs that use a database rather than implement one: everything
  /// kept, the first *n* changes kept for each *n*, 16 random subsets of changes and of sectors of
  /// 4 KiB if there are many, the last write torn at every 64th byte.
  public static let brief: CrashEnumeration = {
    var enumeration = CrashEnumeration()
    enumeration.subsetLimit = 4
    enumeration.sampleCount = 16
    enumeration.sectorSizes = [4096]
    enumeration.tornByteStride = 64
    enumeration.rests = [.absent, .extended]
    return enumeration
  }()
}

extension CrashPoint {
  /// Enumerates the legal states, beginning with those that keep the order of changes.
  ///
  /// In this order: all kept; the first *n* changes kept, for each *n*; the same with the last
  /// write torn at each byte, for each of the rests; every subset of the changes; every subset of
  /// the writes' sectors; each rename with both names. A state can come up more than once if a
  /// change has no effect.
  ///
  /// - Complexity: what it calls `body` for; 2^``CrashEnumeration/subsetLimit`` subsets at most.
  public func forEachState(
    _ options: CrashEnumeration = CrashEnumeration(), _ body: (CrashState) throws -> Void
  ) rethrows {
    let count = pending.count
    try body(allKept)
    guard count > 0 else { return }

    if !options.onlyNew {
      for length in 0..<count { try body(prefix(length)) }
    }
    if case .write(_, _, let bytes) = pending[count - 1].effect {
      var state = allKept
      for place in stride(from: 0, to: bytes.count, by: max(1, options.tornByteStride)) {
        for rest in options.rests where place > 0 || rest != .absent || !options.onlyNew {
          state.fates[count - 1] = .torn(count: place, rest: rest)
          try body(state)
        }
      }
    }
    try forEachSubset(options, body)
    try forEachSectorSubset(options, body)
    for (index, change) in pending.enumerated() {
      guard case .rename = change.effect, !options.onlyNew || index == count - 1 else { continue }
      var state = allKept
      state.fates[index] = .doubled
      try body(state)
    }
  }

  /// The first changes kept, in the order of the calls, the others lost.
  private func prefix(_ length: Int) -> CrashState {
    CrashState(pending.indices.map { $0 < length ? .kept : .dropped })
  }

  private func forEachSubset(
    _ options: CrashEnumeration, _ body: (CrashState) throws -> Void
  ) rethrows {
    let count = pending.count
    guard count > 1 else { return }
    let last = UInt64(1) << UInt64(min(count, 63) - 1)
    func state(_ mask: UInt64) -> CrashState {
      CrashState(pending.indices.map { mask >> UInt64($0) & 1 == 1 ? .kept : .dropped })
    }
    if count <= min(options.subsetLimit, 20) {
      let all = UInt64(1) << UInt64(count) - 1
      for mask in 1..<all where !options.onlyNew || mask & last != 0 {
        // Prefixes were there already.
        if mask & (mask + 1) == 0 { continue }
        try body(state(mask))
      }
      return
    }
    var random = SeededRandomness(seed: options.seed)
    for _ in 0..<options.sampleCount {
      let share = Double.random(in: 0...1, using: &random)
      var fates = pending.map { _ -> CrashState.Fate in
        Double.random(in: 0..<1, using: &random) < share ? .kept : .dropped
      }
      if options.onlyNew { fates[count - 1] = .kept }
      try body(CrashState(fates))
    }
  }

  private func forEachSectorSubset(
    _ options: CrashEnumeration, _ body: (CrashState) throws -> Void
  ) rethrows {
    for size in options.sectorSizes {
      // The sectors of each pending write, laid end to end: bit i of a mask is the i-th of all.
      var counts = [Int](repeating: 0, count: pending.count)
      for (index, change) in pending.enumerated() {
        guard case .write(_, let offset, let bytes) = change.effect else { continue }
        counts[index] = (offset + bytes.count - 1) / size - offset / size + 1
      }
      // A write within one sector is there or not: those were the subsets.
      guard counts.contains(where: { $0 > 1 }) else { continue }
      if options.onlyNew, counts[pending.count - 1] == 0 { continue }
      let total = counts.reduce(0, +)
      func state(_ mask: UInt64, _ extends: Bool) -> CrashState {
        var place = 0
        return CrashState(
          counts.map { count in
            defer { place += count }
            guard count > 0 else { return .kept }
            let bits = mask >> UInt64(place) & (UInt64(1) << UInt64(count) - 1)
            return .sectors(size: size, mask: bits, extends: extends)
          })
      }
      if total <= min(options.subsetLimit, 20) {
        for mask in 0..<UInt64(1) << UInt64(total) - 1 {
          try body(state(mask, true))
          try body(state(mask, false))
        }
        continue
      }
      var random = SeededRandomness(seed: options.seed &+ UInt64(size))
      for _ in 0..<options.sampleCount {
        try body(
          CrashState(
            counts.map { count in
              guard count > 0 else { return .kept }
              return .sectors(
                size: size, mask: random.next(), extends: Bool.random(using: &random))
            }))
      }
    }
  }

  /// One legal state at random.
  ///
  /// Each draw first decides how orderly this disk is (in the order of the calls, or any change
  /// whatever), how much it keeps, and whether entries fare like content; then each change's fate.
  public func randomState(using random: inout some RandomNumberGenerator) -> CrashState {
    let kept = [0.1, 0.5, 0.9].randomElement(using: &random)!
    if Bool.random(using: &random) {
      let length = Int.random(in: 0...pending.count, using: &random)
      var state = prefix(length)
      if length < pending.count {
        state.fates[length] = fate(of: pending[length].effect, keeping: 0, using: &random)
      }
      return state
    }
    let entriesAreSafe = Bool.random(using: &random)
    return CrashState(
      pending.map { change in
        if entriesAreSafe, change.effect.file == nil { return .kept }
        return fate(of: change.effect, keeping: kept, using: &random)
      })
  }

  private func fate(
    of effect: DiskEffect, keeping kept: Double, using random: inout some RandomNumberGenerator
  ) -> CrashState.Fate {
    if Double.random(in: 0..<1, using: &random) < kept { return .kept }
    switch effect {
    case .write(_, _, let bytes):
      switch Int.random(in: 0..<6, using: &random) {
      case 0: return .dropped
      case 1, 2:
        let size = Bool.random(using: &random) ? 512 : 4096
        return .sectors(
          size: size, mask: UInt64.random(in: 0...UInt64.max, using: &random),
          extends: Bool.random(using: &random))
      default:
        let count = Int.random(in: 0..<bytes.count, using: &random)
        let rests: [CrashState.Rest] = [
          .absent, .extended, .garbage(seed: UInt64.random(in: 0...UInt64.max, using: &random)),
        ]
        return .torn(count: count, rest: rests.randomElement(using: &random)!)
      }
    case .rename:
      return Int.random(in: 0..<4, using: &random) == 0 ? .doubled : .dropped
    default: return .dropped
    }
  }
}
