import DendroEngine
import Synchronization

/// Where a server is, and which of its databases is meant.
package struct RemoteAddress: Hashable, Sendable {
  /// Whether the connection is encrypted.
  package let isSecure: Bool
  package let host: String
  package let port: Int
  /// Nil if the server knows by itself, as `dendro serve` does.
  package let namespace: String?

  package init(isSecure: Bool, host: String, port: Int, namespace: String?) {
    self.isSecure = isSecure
    self.host = host
    self.port = port
    self.namespace = namespace
  }

  /// - Returns: nil if the URL names no server.
  init?(_ url: DatabaseURL) {
    guard url.scheme == "http" || url.scheme == "https" else { return nil }
    let isSecure = url.scheme == "https"
    let labels = url.host.split(separator: ".", omittingEmptySubsequences: false)
    let isAddress = url.host.hasPrefix("[") || labels.last?.allSatisfy(\.isNumber) ?? true
    self.init(
      isSecure: isSecure, host: url.host, port: url.port ?? (isSecure ? 443 : 80),
      namespace: url.namespace ?? (labels.count >= 3 && !isAddress ? String(labels[0]) : nil))
  }
}

extension RemoteAddress: CustomStringConvertible {
  /// The URL of the database, by which directories name it.
  package var description: String {
    "\(isSecure ? "https" : "http")://\(host):\(port)" + (namespace.map { "?ns=\($0)" } ?? "")
  }
}

extension Database {
  /// Has it keep in step with an emulator, if that is possible.
  func keepInStep(withEmulatorAt host: String, port: Int) {
    guard let make = Remotes.make else { return }
    let address = RemoteAddress(
      isSecure: false, host: host, port: port, namespace: settings.namespace)
    if let old = remoteHolder?.files { try? old.close() }
    keepInStep(RemoteSetup(address), log: { [engine] in engine?.record($0) }, make)
    if settings.isPersistenceWanted { keepFiles() }
  }

  /// Has the database sign in at its server with tokens of this closure, and returns at once.
  ///
  /// Call it before the first listener or write: over a connection that is in use, these reach the server before the token
  /// does, and a listener that the server refuses does not come back. Otherwise no connection is made before there is a
  /// token. `.info/authenticated` turns true once the server has accepted one.
  ///
  /// The closure is called once at first, some minutes before a user's signed token expires, and whenever the server refuses a
  /// token. If it throws, it is called again after 2 to 64 seconds. A newer call of this method cancels a closure that is
  /// still running. Listeners and known data stay when the user changes. Writes without an answer are sent with the rights of
  /// the user who has made them: they are taken back, and wait until that user signs in again.
  ///
  /// - Parameter token: gives a token; nil signs out. Called on no particular thread.
  /// - Throws: ``DatabaseError/Code/unavailable`` in a database that owns its data.
  public func authenticate(with token: (@Sendable () async throws -> DatabaseToken)?) throws {
    try checkOpen()
    connection.noteUse()
    guard let remote else {
      throw DatabaseError(
        .unavailable, "NoServer", "the database keeps in step with no server at which to sign in")
    }
    remote.authenticate(token)
  }
}
