import Synchronization

/// Which host of an address is tried first: not one that has taken a connection and given no answer.
///
/// A primary whose standby has taken its place, and which goes on to run, takes connections and commits nothing.
final class HostChoice: Sendable {
  private let next = Atomic<Int>(0)

  /// Modulo the number of hosts.
  var first: Int { next.load(ordering: .relaxed) }

  func prefer(_ host: Int) { next.store(host, ordering: .relaxed) }

  func passOver(_ host: Int) { next.store(host + 1, ordering: .relaxed) }
}
