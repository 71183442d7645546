#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif
import Synchronization

/// How often the lineage of this process has been forked since the first look: whoever remembers the
/// count can tell, at the price of one load, that it now runs in a child.
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
