import DendroTree

/// What part a server has among those that share a database, at one moment.
package struct PeerStatus: Hashable, Sendable {
  package enum Role: String, Sendable {
    /// It takes writes.
    case leader
    /// It shows what the leader has written.
    case follower
    /// It takes no part any more, and shows what it has.
    case stopped
  }

  package var role: Role
  /// How often the leading has changed hands.
  package var epoch: Int64 = 0
  /// The last write that this server shows.
  package var lsn: UInt64 = 0
  /// The last write that the servers have together, as far as this one knows.
  package var sharedLSN: UInt64 = 0
  /// How many batches this server has appended since it was opened, and how long that took.
  package var appendCount: UInt64 = 0
  package var appendTime = Duration.zero
  /// How many of them had to be sent again, since the answer was missing.
  package var undecidedCount: UInt64 = 0
  /// How often this server has begun to lead since it was opened.
  package var takeoverCount: UInt64 = 0
  /// How many servers have a line to this one if it leads; 1 or 0 if it follows and has one to the leader or not.
  package var lineCount = 0
  /// What keeps it from the others; nil if nothing does. For administrators.
  package var trouble: String?
  /// The name of this server.
  package var server = ""
  /// The name of the leader; nil if there is none.
  package var leader: String?
  /// Where clients reach the leader; nil if there is none, or if it takes no requests.
  package var leaderAddress: String?

  package init(_ role: Role) { self.role = role }

  /// How many writes this server has still to take.
  var lag: UInt64 { sharedLSN - min(sharedLSN, lsn) }
  /// In seconds.
  var appendSeconds: Double { appendTime / .seconds(1) }

  /// All of it, as an object.
  var json: String {
    let numbers: [(String, String)] = [
      ("epoch", "\(epoch)"), ("lsn", "\(lsn)"), ("sharedLsn", "\(sharedLSN)"), ("lag", "\(lag)"),
      ("appends", "\(appendCount)"),
      ("appendSeconds", JSONWriter.string(Node(.double(appendSeconds)))),
      ("undecided", "\(undecidedCount)"), ("takeovers", "\(takeoverCount)"),
      ("lines", "\(lineCount)"),
    ]
    let texts: [(String, String)] = [
      ("trouble", Self.text(trouble)), ("server", Self.text(server)),
      ("leader", Self.text(leader)), ("leaderAddress", Self.text(leaderAddress)),
    ]
    let members = ([("role", Self.text(role.rawValue))] + numbers + texts)
      .map { "\"\($0.0)\":\($0.1)" }
    return "{\(members.joined(separator: ","))}"
  }

  /// What everybody may know: who takes writes.
  ///
  /// - Parameter takesWrites: whether this server does.
  func publicJSON(takesWrites: Bool) -> String {
    "{\"role\":\(Self.text(role.rawValue)),\"takesWrites\":\(takesWrites),"
      + "\"leader\":\(Self.text(leaderAddress))}"
  }

  private static func text(_ text: String?) -> String {
    text.map { JSONWriter.string(Node(.string($0))) } ?? "null"
  }
}
