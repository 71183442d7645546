/// A source of the time, which is recorded with each write but orders nothing.
package protocol Clock: AnyObject, Sendable {
  /// Milliseconds since 1970-01-01T00:00:00Z, leap seconds ignored. May step back.
  func now() -> Int64
}

/// A source of random numbers: for database ids, salts and push ids.
package protocol Randomness: AnyObject, Sendable {
  func next() -> UInt64
}

/// The parts of the system that the engine uses: disk, clock and randomness.
package struct Environment: Sendable {
  package var fileSystem: any FileSystem
  package var clock: any Clock
  package var randomness: any Randomness

  package init(fileSystem: any FileSystem, clock: any Clock, randomness: any Randomness) {
    self.fileSystem = fileSystem
    self.clock = clock
    self.randomness = randomness
  }
}
