/// Where the time comes from. Time orders nothing; it is recorded.
package protocol Clock: AnyObject, Sendable {
  /// Milliseconds since 1970-01-01T00:00:00Z, leap seconds ignored. May step back.
  func now() -> Int64
}

/// Where randomness comes from: database ids, salts, push ids.
package protocol Randomness: AnyObject, Sendable {
  func next() -> UInt64
}

/// All that the engine touches of the world.
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
