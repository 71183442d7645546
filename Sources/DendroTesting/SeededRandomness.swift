import DendroStorage
private import Synchronization

/// A generator that gives the same numbers for the same seed, on every machine (SplitMix64:
/// Steele, Lea and Flood, OOPSLA 2014).
///
/// Not for secrets. May be used from any thread; the order in which threads draw is theirs.
public final class SeededRandomness: Sendable, RandomNumberGenerator {
  private let state: Atomic<UInt64>

  /// A generator of its own sequence for each seed.
  public init(seed: UInt64) {
    state = Atomic(seed)
  }

  /// The next number, all 64 bits of it random.
  public func next() -> UInt64 {
    Self.mixed(state.wrappingAdd(Self.step, ordering: .relaxed).newValue)
  }

  /// What the generator would have to be seeded with to go on from here.
  public var seed: UInt64 { state.load(ordering: .relaxed) }

  /// By how much the state grows with each number.
  package static let step: UInt64 = 0x9e37_79b9_7f4a_7c15

  /// The number of a state.
  package static func mixed(_ state: UInt64) -> UInt64 {
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}

extension SeededRandomness: Randomness {}
