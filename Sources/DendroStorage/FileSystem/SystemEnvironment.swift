import DendroPlatform

/// The system's wall clock.
package final class SystemClock: Clock {
  package init() {}

  package func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}

/// The system's generator.
package final class SystemRandomness: Randomness {
  package init() {}

  package func next() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}

extension Environment {
  /// The real disk, clock and generator.
  package static let system = Environment(
    fileSystem: DiskFileSystem(), clock: SystemClock(), randomness: SystemRandomness())
}
