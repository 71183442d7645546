package import DendroTree
public import Foundation

/// A write that the server of a database has not answered.
public struct PendingWrite: Sendable, Identifiable {
  /// What a write waits for.
  public enum State: Hashable, Sendable {
    /// The network, or the server's answer.
    case answer
    /// That its user signs in again.
    case user
    /// ``PendingWrite/send()`` or ``PendingWrite/drop()``: it was sent, and the server cannot tell whether it has made it, since
    /// it is another one, or was restored or repaired, or has forgotten it. It has increments, which would count twice.
    case decision
  }

  /// Its number: writes were made in this order.
  public let id: Int
  /// The path of the location that it sets or updates.
  public let path: String
  /// When it was made.
  public let time: Date
  /// The id of the user who has made it; nil if no user was signed in, and for an administrator.
  public let userID: String?
  /// What it waits for.
  public let state: State
  private let remote: any Remote

  init(_ write: RemoteWrite, _ remote: any Remote) {
    id = write.number
    path = "\(write.path)"
    time = Date(timeIntervalSince1970: Double(write.time) / 1000)
    userID = write.userID
    state = write.state
    self.remote = remote
  }

  /// Has a write that waits for a decision be sent again. Does nothing for another one, and once it is answered.
  public func send() { remote.release(write: id) }

  /// Takes the write back. Its completion gets ``DatabaseError/Code/canceled``. The server may have made it, if it was sent. Does
  /// nothing once it is answered.
  public func drop() { remote.drop(write: id) }
}

/// A write without an answer, as a remote has it.
package struct RemoteWrite: Sendable {
  package let number: Int
  package let path: Path
  package let time: Int64
  package let userID: String?
  package let state: PendingWrite.State

  package init(
    number: Int, path: Path, time: Int64, userID: String?, state: PendingWrite.State
  ) {
    self.number = number
    self.path = path
    self.time = time
    self.userID = userID
    self.state = state
  }
}

extension Database {
  /// The writes that the server has not answered, in their order, those of other users included. Empty in a database that owns
  /// its data.
  ///
  /// - Throws: ``DatabaseError/Code/closed``.
  /// - Complexity: O(n log n) for the writes.
  public func pendingWrites() throws -> [PendingWrite] {
    try checkOpen()
    guard let remote else { return [] }
    return remote.pendingWrites().map { PendingWrite($0, remote) }
  }
}
