import DendroTree

/// Which namespace a server has, and how it is reached and reaches others.
struct ClusterSettings: Sendable {
  /// Of PostgreSQL: a `postgresql://` URL, or a line of keys and values as libpq reads it.
  var address: String
  var namespace: String
  var serverID: ServerID
  /// Tells this opening of the server from others; drawn at random.
  var opening = (0..<openingByteCount).map { _ in UInt8.random(in: .min ... .max) }
  /// Where other servers reach this one; empty if it takes no requests.
  var ownAddress = ""

  static let openingByteCount = 8
  static let takeoverDelay = Duration.seconds(3)

  /// Names this opening of this server among all, in the log and in PostgreSQL.
  var client: [UInt8] { serverID.bytes + opening }

  /// An opening as text, of what names it among all.
  static func openingText(of client: [UInt8]) -> String {
    hexadecimal(Array(client.suffix(openingByteCount)))
  }

  /// Without an answer for so long a connection counts as lost.
  var statementTimeout = Duration.seconds(5)
  /// Between two raises of this server's counter.
  var beatInterval = Duration.seconds(1)
  /// How long a leader's counter stands still before another server takes over.
  var takeoverDelay = Self.takeoverDelay
  /// How long another server is the one that is to lead before this one hands over, and up to twice as long; nil: only
  /// operators change who leads. Namespaces of one server do not change hands all at once.
  var spreadDelay: Duration?
  /// Between two looks at the log while there is news, and the longest pause between two.
  var lookIntervals = (Duration.milliseconds(5), Duration.milliseconds(40))
  /// Between two looks while the leader sends its batches over a line.
  var lineLookInterval = Duration.milliseconds(200)
  /// How long PostgreSQL does not answer before writes are refused.
  var pauseDelay = Duration.seconds(5)
  /// How long a follower that has more than PostgreSQL waits for the leader to append that again.
  var setBackDelay = Duration.seconds(10)
  /// How long closing waits for a batch whose outcome is not known.
  var closingDelay = Duration.seconds(5)
  /// Bytes of log behind the newest checkpoint in PostgreSQL from which on the next one is published, unless that is
  /// large: then half of its size.
  var checkpointByteMin: Int64 = 32 << 20
  /// Of one row of a checkpoint.
  var partByteCount = 1 << 20
  /// How long a server that publishes a checkpoint stands still before another one does it instead.
  var publisherDelay = Duration.seconds(60)
  /// Bytes of log that are kept for a server that is behind, beyond what the checkpoints need.
  var lagByteLimit: Int64 = 1 << 30

  /// Which host of the address the connections of this server try first.
  var hosts: HostChoice { .of(address) }

  /// Between attempts to reach PostgreSQL.
  var pauses: Pauses {
    // An address that cannot be read is refused where it is used.
    Pauses(statementTimeout, hostCount: hostCount)
  }

  /// Of the address.
  var hostCount: Int { (try? PostgresAddress(address))?.hosts.count ?? 1 }
}
