import Synchronization

/// Which host of an address is tried first: not one that has taken a connection and given no answer.
///
/// A primary whose standby has taken its place, and which goes on to run, takes connections and commits nothing.
final class HostChoice: Sendable {
  private let next = Atomic<Int>(0)

  private static let choices = Mutex<[String: HostChoice]>([:])

  /// The choice of all connections of this process to an address.
  static func of(_ address: String) -> HostChoice {
    choices.withLock { choices in
      if let known = choices[address] { return known }
      let new = HostChoice()
      choices[address] = new
      return new
    }
  }

  /// Modulo the number of hosts.
  var first: Int { next.load(ordering: .relaxed) }

  func prefer(_ host: Int) { next.store(host, ordering: .relaxed) }

  func passOver(_ host: Int) { next.store(host + 1, ordering: .relaxed) }
}
