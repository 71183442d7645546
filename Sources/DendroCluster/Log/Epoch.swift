/// The time for which one server leads a namespace. If two servers believe that they have begun an epoch, its token tells
/// which of them has.
struct Epoch: Hashable, Sendable {
  static let tokenByteCount = 16

  var number: Int64
  /// Drawn at random by the server that began it.
  var token: [UInt8]
}

/// The name of a server: of its directory. Drawn at random when that is made.
struct ServerID: Hashable, Sendable {
  static let byteCount = 16
  /// No server: the leader of a namespace that has none.
  static let none = ServerID(bytes: [])

  let bytes: [UInt8]

  var description: String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// How far the shared log of a namespace is, and who appends to it.
struct SharedHead: Sendable {
  var epoch: Epoch
  var leader: ServerID
  var position: LogPosition
  /// The leader's counter, which it raises as long as it is there; nil if it is not known.
  var leaderCounter: Int64?
  /// Where the leader can be reached; empty if it takes no requests.
  var leaderAddress: String
  /// Its opening; nil if it is not known.
  var leaderOpening: String?

  /// What is known of the leader's part.
  var leaderRow: Peers.Row? {
    leaderOpening.flatMap { opening in
      leaderCounter.map { Peers.Row(opening: opening, counter: $0) }
    }
  }
}
