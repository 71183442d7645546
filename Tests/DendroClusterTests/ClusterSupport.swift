import Dendro
import DendroEngine
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

/// Directories of servers, and a PostgreSQL.
final class TestCluster {
  let postgres: PostgresServer
  let folder: TemporaryFolder
  /// How PostgreSQL is reached; nil: as it is.
  var address: String?
  /// Whether servers open lines to each other.
  var hasLines = false

  init(_ settings: String...) throws {
    postgres = try PostgresServer()
    folder = try TemporaryFolder()
  }

  func directory(_ name: String) -> String { folder.path + "/" + name }

  /// Opens a server's database. It takes over as soon as the program does: a busy machine may stand still for a second.
  ///
  /// - Parameter isPatient: whether it is opened again and again for a minute if PostgreSQL does not answer within the short
  ///   time for which a server waits.
  func open(
    _ name: String, namespace: String = "shop", options: DatabaseOptions = DatabaseOptions(),
    openingLimit: Duration = .seconds(20), showsAtOnce: Bool = true, isPatient: Bool = false,
    adjust: @escaping @Sendable (inout ClusterSettings) -> Void = { _ in }
  ) throws(DatabaseError) -> Database {
    var cluster = ClusterOptions(address ?? postgres.address, namespace)
    cluster.openingLimit = openingLimit
    cluster.showsAtOnce = showsAtOnce
    cluster.lines = nil
    if hasLines {
      cluster.lines = try ServerLines(
        listeningAt: "127.0.0.1", port: 0, advertisedHost: "127.0.0.1")
    }
    cluster.adjust = { settings in
      settings.beatInterval = .milliseconds(100)
      settings.takeoverDelay = .seconds(3)
      settings.pauseDelay = .milliseconds(500)
      settings.setBackDelay = .seconds(3)
      settings.closingDelay = .milliseconds(500)
      settings.statementTimeout = .seconds(2)
      adjust(&settings)
    }
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      do throws(DatabaseError) {
        return try ClusterOpening(directory(name), cluster, options).run()
      } catch {
        guard isPatient, error.code == .unavailable, .now < deadline else { throw error }
      }
    }
  }
}

/// Waits until a condition holds; otherwise the test has failed.
func eventually(
  _ what: Comment, _ location: SourceLocation = #_sourceLocation,
  _ condition: () throws -> Bool
) async throws {
  if let problem = try await waitUntil(condition) {
    Issue.record("\(what): \(problem)", sourceLocation: location)
  }
}

/// Runs what waits on a thread of its own.
func waiting<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
  }
}

extension Database {
  var isLeader: Bool { clusterStatus?.role == .leader }

  var node: ClusterNode? { sharedLog as? ClusterNode }

  /// All data.
  var root: Node { engine?.head.root ?? .empty }

  /// The value at a path.
  func value(_ path: String) async throws -> Int? {
    try await reference(withPath: path).getData().value as? Int
  }
}

/// Tells tasks to end.
final class Flag: Sendable {
  private let value = Atomic<Bool>(false)
  var isSet: Bool { value.load(ordering: .relaxed) }
  func set() { value.store(true, ordering: .relaxed) }
}

/// The output and status of `dendro`, run as a process of its own.
func dendro(_ arguments: String...) throws -> (output: String, status: Int32) {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: ServerProcess.executable)
  process.arguments = arguments
  let output = Pipe()
  process.standardOutput = output
  process.standardError = output
  try process.run()
  let data = output.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return (String(decoding: data, as: UTF8.self), process.terminationStatus)
}
