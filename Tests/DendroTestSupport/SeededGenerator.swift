private import DendroTesting

/// The numbers of `SeededRandomness`, as a value: a copy gives the same numbers as the original.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= SeededRandomness.step
    return SeededRandomness.mixed(state)
  }

  /// True once in `count` times.
  package mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

  /// A number from 0 up to, not including, `bound`.
  package mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}
