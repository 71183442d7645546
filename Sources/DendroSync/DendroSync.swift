import Dendro

/// Lets databases keep in step with a server that speaks the protocol of Firebase's Realtime Database: `dendro serve`, an
/// emulator, or Firebase itself.
///
/// ```swift
/// import Dendro
/// import DendroSync
///
/// DendroSync.enable()
/// let database = Database.database(url: "http://127.0.0.1:9000?ns=shop")
/// database.reference(withPath: "list").observe(.value) { show($0) }
/// ```
///
/// What is written shows at once, also without the network; the completion of a write means the server's answer. Data and
/// writes that wait for the network are kept in memory: before a program ends it waits for
/// `Database.waitForPendingWrites()`. `Database.open(at:syncingWith:)` keeps them in a directory.
public enum DendroSync {
  /// Has `Database.database(url:)`, `Database.open(at:syncingWith:)` and `Database.useEmulator(withHost:port:)` give databases
  /// that keep in step with a server, from now on. Databases that were made before stay what they are.
  ///
  /// - Parameter certificateFile: a PEM file of certificates to trust in addition to those of the system, for a server with
  ///   a self-signed certificate. It is read at once. If it cannot be read, every `https` connection fails.
  public static func enable(trusting certificateFile: String? = nil) {
    let trust = certificateFile.map { TrustedCertificates(file: $0) }
    Remotes.enable { setup, observer in SyncClient(setup, trusting: trust, observer) }
  }
}
