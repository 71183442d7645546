import DendroEngine
import DendroStorage

/// What part a server has in a cluster, at one moment.
public struct ClusterStatus: Hashable, Sendable {
  /// What a server does in its namespace.
  public enum Role: Hashable, Sendable {
    /// It takes writes.
    case leader
    /// It shows what the leader has written.
    case follower
    /// It takes no part any more, for this reason, and shows what it has. It has to be opened again.
    case stopped(String)
  }

  /// What the server does.
  public let role: Role
  /// How often the leading has changed hands.
  public let epoch: Int64
  /// The last write that this server shows.
  public let lsn: UInt64
  /// The last write in PostgreSQL, as this server has seen it last.
  public let sharedLSN: UInt64
  /// The leader's name, as hexadecimal digits; nil if there is none.
  public let leader: String?
  /// Where clients reach the leader; nil if there is none, or if it takes no requests.
  public let leaderAddress: String?
  /// This server's name, as hexadecimal digits. It stays the same as long as the directory does.
  public let server: String
  /// How many batches this server has appended since it was opened.
  public let appendCount: UInt64
  /// How long appending them took, from the moment at which each was ready.
  public let appendTime: Duration
  /// How many of them had to be sent again, since the answer was missing.
  public let undecidedCount: UInt64
  /// How often this server has begun to lead since it was opened.
  public let takeoverCount: UInt64
  /// How many servers have a line to this one if it leads; 1 or 0 if it follows and has a line to the leader or not. Without a
  /// line, writes and what was written go by PostgreSQL's tables, which takes longer.
  public let lineCount: Int
  /// Why PostgreSQL cannot be reached; nil if it can.
  public let trouble: String?

  init(_ node: ClusterNode) {
    let status = node.currentStatus
    switch status.role {
    case .leading: role = .leader
    case .opening, .following: role = .follower
    case .stopped(let reason): role = .stopped(reason)
    }
    epoch = status.epoch
    lsn = (try? node.withEngine { $0.head.lsn.rawValue }) ?? 0
    sharedLSN = max(
      status.sharedLSN.rawValue, node.leadership.position?.lsn.rawValue ?? 0, lsn)
    // One that has stopped does not hear who leads.
    let isKnown = if case .stopped = status.role { false } else { status.leader != nil }
    leader = isKnown ? status.leader?.description : nil
    leaderAddress = isKnown && !status.leaderAddress.isEmpty ? status.leaderAddress : nil
    server = node.settings.serverID.description
    let figures = node.leadership.figures
    appendCount = figures.appendCount
    appendTime = figures.appendTime
    undecidedCount = figures.undecidedCount
    takeoverCount = status.takeoverCount
    lineCount = node.lineCount
    trouble = status.trouble ?? node.leadership.trouble?.reason
  }
}
