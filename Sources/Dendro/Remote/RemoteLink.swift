import DendroEngine
import DendroTree

/// What a remote reaches of its database. It does not keep the database open.
final class RemoteLink: RemoteObserver {
  private let hub: EventHub
  private let connection: Connection
  private let logEvent: @Sendable (LogEvent) -> Void

  init(
    _ hub: EventHub, _ connection: Connection, log: @escaping @Sendable (LogEvent) -> Void
  ) {
    self.hub = hub
    self.connection = connection
    logEvent = log
  }

  func changed(_ target: QueryTarget, _ known: Known) { hub.changed(target, known) }
  func ended(_ target: QueryTarget, _ error: DatabaseError) { hub.ended(target, error) }
  func handOver() { hub.handOver() }
  func log(_ message: String) { logEvent(LogEvent(.info, message)) }
  func report(_ error: DatabaseError) { hub.report(error) }

  func showInfo(isConnected: Bool, timeOffset: Int64, isAuthenticated: Bool) {
    connection.show(
      isConnected: isConnected, timeOffset: timeOffset, isAuthenticated: isAuthenticated,
      hub.infoChanged)
  }
}
