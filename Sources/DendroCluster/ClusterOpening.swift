import Dendro
import DendroEngine
import DendroStorage
import Foundation

/// Opens one server's database of a cluster.
struct ClusterOpening {
  private let directory: String
  private let cluster: ClusterOptions
  private let options: DatabaseOptions

  init(_ path: String, _ cluster: ClusterOptions, _ options: DatabaseOptions) {
    directory = URL(fileURLWithPath: path).standardizedFileURL.path
    self.cluster = cluster
    self.options = options
  }

  func run() throws(DatabaseError) -> Database {
    guard (1...ClusterOptions.namespaceByteLimit).contains(cluster.namespace.utf8.count),
      !cluster.namespace.utf8.contains(0)
    else {
      throw DatabaseError(
        .invalidArgument, "InvalidNamespace",
        "the name of a namespace has 1 to \(ClusterOptions.namespaceByteLimit) bytes, and none of them is zero"
      )
    }
    var started: (node: ClusterNode, engine: Engine, position: CopyPosition)?
    let report = options.log
    let database = try Database.sharing(options: options) {
      (options, environment) throws(DatabaseError) in
      do throws(ClusterError) {
        let opened = try open(options, environment, report: report)
        started = opened
        return opened.engine
      } catch {
        throw DatabaseError(error)
      }
    }
    // The observer is there: what the node takes now is shown to listeners.
    guard let started else { preconditionFailure("the engine was opened") }
    started.node.start(started.engine, at: started.position)
    do throws(ClusterError) {
      try started.node.waitUntilInStep(cluster.openingLimit)
    } catch {
      try? database.close()
      throw DatabaseError(error)
    }
    return database
  }

  private func open(
    _ options: EngineOptions, _ environment: DendroStorage.Environment,
    report: @escaping @Sendable (LogEvent) -> Void
  ) throws(ClusterError) -> (node: ClusterNode, engine: Engine, position: CopyPosition) {
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    } catch {
      throw .files("make \(directory): \(error.localizedDescription)")
    }
    try checkNoDatabase(environment)
    let copy = try CopyFile(
      at: directory + "/cluster", newID: environment.randomness.bytes(ServerID.byteCount))
    let settings = cluster.settings(copy.serverID)
    let node = try ClusterNode(
      settings, copy, directory: directory, cluster.lines, environment, report: report)
    let session = try session(settings, node)
    let opening = CopyOpening(
      directory: directory, settings: settings, copy: copy, session: session,
      environment: environment, report: report)
    let (engine, position) = try opening.run { (path, databaseID) throws(EngineError) in
      try Engine.open(
        at: path, options: options, environment: environment,
        sharing: Sharing(
          log: node, databaseID: databaseID, showsAtOnce: cluster.showsAtOnce))
    }
    return (node, engine, position)
  }

  /// Refuses a directory that is a database of its own: no reader of the copy would see the data of that database.
  private func checkNoDatabase(_ environment: DendroStorage.Environment) throws(ClusterError) {
    let isDatabase: Bool
    do throws(StorageError) {
      let found = try DatabaseDirectory.open(directory, environment: environment, mode: .readOnly)
      defer { found.close() }
      isDatabase = try !found.contents().isEmpty
    } catch {
      if case .notFound = error { return }
      throw .engine(.storage(error))
    }
    if isDatabase {
      throw .otherCluster(
        "\(directory) is a database of its own: its *.log and *.checkpoint have to be elsewhere"
      )
    }
  }

  /// Connects to PostgreSQL, which may be starting.
  private func session(
    _ settings: ClusterSettings, _ node: ClusterNode
  ) throws(ClusterError) -> ClusterSession {
    let deadline = ContinuousClock.now + cluster.openingLimit
    var pauses = settings.pauses
    while true {
      do throws(ClusterError) {
        return try ClusterSession(
          settings, node.interruption, newClusterID: node.environment.randomness.bytes(16))
      } catch {
        guard case .postgres(let cause) = error, cause.mayPass, .now < deadline else { throw error }
        pauses.wait(node.interruption)
      }
    }
  }
}

/// Which cluster and namespace, and how patient a server is.
struct ClusterOptions: Sendable {
  static let namespaceByteLimit = 256

  var address: String
  var namespace: String
  /// Where clients reach this server; empty if it takes no requests.
  var ownAddress = ""
  /// How long opening waits for PostgreSQL.
  var openingLimit = Duration.seconds(10)
  /// Whether readers and listeners see a write of this program before PostgreSQL has it.
  var showsAtOnce = true
  /// To other servers; nil: all goes through PostgreSQL.
  var lines: ServerLines? = .calling
  /// See `ClusterSettings.spreadDelay`.
  var spreadDelay: Duration?
  /// Changes the settings, for tests.
  var adjust: @Sendable (inout ClusterSettings) -> Void = { _ in }

  init(_ address: String, _ namespace: String) {
    self.address = address
    self.namespace = namespace
  }

  func settings(_ serverID: ServerID) -> ClusterSettings {
    var settings = ClusterSettings(
      address: address, namespace: namespace, serverID: serverID, ownAddress: ownAddress)
    settings.spreadDelay = spreadDelay
    adjust(&settings)
    return settings
  }
}

extension PostgresError {
  /// Whether another attempt may go better.
  var mayPass: Bool {
    switch self {
    case .badAddress, .noLibrary, .malformed: false
    case .refused(let state, _):
      // PostgreSQL has no room for connections, or is only starting.
      state.hasPrefix("53") || state.hasPrefix("57") || state.hasPrefix("40")
    case .unreachable, .lost, .timedOut, .unreplicated, .interrupted: true
    }
  }
}

extension DatabaseError {
  init(_ error: ClusterError) {
    switch error {
    case .engine(let error): self.init(error)
    case .postgres(.badAddress(let reason)):
      self.init(.invalidArgument, "InvalidAddress", reason)
    case .postgres: self.init(.unavailable, "PostgresUnavailable", "\(error)")
    case .newerSchema: self.init(.unsupportedFormat, "NewerSchema", "\(error)")
    case .otherCluster: self.init(.invalidArgument, "OtherCluster", "\(error)")
    case .damagedBatch: self.init(.corrupt, "DamagedBatch", "\(error)")
    case .setBack: self.init(.corrupt, "SetBack", "\(error)")
    case .trimmed: self.init(.unavailable, "LogTrimmed", "\(error)")
    case .damagedCheckpoint: self.init(.corrupt, "DamagedCheckpoint", "\(error)")
    case .files: self.init(.inputOutput, "InputOutput", "\(error)")
    }
  }
}
