/// What PostgreSQL has of a cluster at one moment.
package struct ClusterOverview: Sendable {
  /// One of the databases that the cluster's servers have together.
  package struct Namespace: Sendable {
    package var name: String
    /// How often the leading has changed hands.
    package var epoch: Int64
    /// The leader's name, as hexadecimal digits; nil if there is none.
    package var leader: String?
    /// Where clients reach the leader; nil if there is none, or if it takes no requests.
    package var leaderAddress: String?
    /// The server that an operator has named to lead, by its address or its name; nil if there is none.
    package var place: String?
    /// The last write.
    package var lsn: UInt64
    /// How many rows the log has, and how many bytes of batches they are.
    package var rowCount: Int64 = 0
    package var byteCount: Int64 = 0
    package var servers: [Server] = []
  }

  /// A server of one namespace. One that was killed stays in the list, and is silent.
  package struct Server: Sendable {
    /// As hexadecimal digits.
    package var name: String
    /// Where clients reach it; nil if it takes no requests.
    package var address: String?
    /// The last write that it has, as it has said about a second ago.
    package var lsn: UInt64
    /// How often it has said so.
    package var counter: Int64
    /// Whether it has not said so for as long as it was watched: it is gone, stands still, or does not reach PostgreSQL.
    package var isSilent = false
    /// Whether it is not to lead.
    package var isDrained = false
  }

  /// The name of the cluster, as hexadecimal digits.
  package let id: String
  /// Of the tables.
  package let version: Int64
  /// In the order of their names.
  package internal(set) var namespaces: [Namespace]

  /// Whether one of its servers has been heard.
  var isHeard: Bool { namespaces.contains { $0.servers.contains { !$0.isSilent } } }
}
