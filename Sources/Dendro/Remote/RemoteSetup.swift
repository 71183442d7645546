package import DendroEngine
package import DendroTree
import Synchronization

/// What makes a remote what it is.
package struct RemoteSetup: Sendable {
  package var address: RemoteAddress
  /// What keeps the server's data and the pending writes in a directory; nil: they are kept in memory.
  package var files: Engine?
  /// How many bytes of data are kept of what nothing listens to, as the program has set it last.
  package var cacheByteCount: @Sendable () -> Int = { 10 << 20 }
  /// Locations that are kept in step all the time.
  package var mirror: [Path]

  package init(
    _ address: RemoteAddress, files: Engine? = nil, mirror: [Path] = []
  ) {
    self.address = address
    self.files = files
    self.mirror = mirror
  }
}

/// What makes the remotes of this process; nil as long as no module that can was enabled.
package enum Remotes {
  package typealias Factory = @Sendable (RemoteSetup, any RemoteObserver) -> any Remote

  private static let factory = Mutex<Factory?>(nil)

  /// Has databases keep in step with servers from now on.
  package static func enable(_ make: @escaping Factory) { factory.withLock { $0 = make } }

  package static var make: Factory? { factory.withLock { $0 } }
}
