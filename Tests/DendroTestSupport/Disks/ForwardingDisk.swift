package import DendroStorage
package import DendroTesting

/// A disk in front of a simulated one.
package protocol ForwardingDisk: ForwardingFileSystem {
  var disk: SimulatedDisk { get }
}

extension ForwardingDisk {
  package var base: any FileSystem { disk }

  /// The simulated disk's clock and randomness, and this in front of its files.
  package var environment: Environment {
    Environment(fileSystem: self, clock: disk.clock, randomness: disk.randomness)
  }
}
