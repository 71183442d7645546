import DendroPlatform
import Synchronization

/// Counts the forks between this process and the one that first read the count. An object that stores the
/// count knows, at the price of one load, whether it now runs in a child.
package enum ForkCount {
  private static let count = Atomic<Int>(0)

  private static let isInstalled: Bool = {
    pthread_atfork(nil, nil) { ForkCount.count.add(1, ordering: .relaxed) }
    return true
  }()

  package static var current: Int {
    _ = isInstalled
    return count.load(ordering: .relaxed)
  }
}
