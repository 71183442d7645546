import DendroTestSupport
import Foundation
import Synchronization
import Testing

/// How long clients wait when the server that leads is gone. No time is asserted: a machine may be busy with other things.
@Suite(
  "serving: takeovers of a cluster",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"), .serialized)
struct ClusterTakeoverTests {
  /// Writes at servers that stay, one write after the other, and notes what is acknowledged.
  private final class Writer: Sendable {
    let history = WriteHistory()
    private let isEnded = Atomic<Bool>(false)

    init(_ ports: [UInt16]) {
      for port in ports {
        Thread.detachNewThread { [self] in
          guard let http = try? HTTPClient(port: port) else { return }
          while !isEnded.load(ordering: .relaxed) {
            let value = history.newValue()
            let begun = ContinuousClock.now
            guard let status = try? http("PUT", "/\(port).json", "\(value)").status else { return }
            history.add(.init(value, begun: begun, status == 200 ? .acknowledged : .undecided))
            usleep(2_000)
          }
        }
      }
    }

    deinit { end() }

    func end() { isEnded.store(true, ordering: .relaxed) }
  }

  @Test(
    "another server takes writes soon when the one that leads is killed, and sooner if it is ended")
  func pauses() async throws {
    var pauses: [(killed: Duration, ended: Duration)] = []
    for _ in 0..<Scale.scaled(20) {
      let cluster = try ClusterServers()
      var servers = try ["a", "b", "c"].map { try cluster.start($0) }
      var found: [Duration] = []
      for isKilled in [true, false] {
        let (leader, others) = try await ClusterServers.roles(of: servers)
        let writer = Writer(others.map(\.port))
        defer { writer.end() }
        try await eventually("writes are acknowledged") { writer.history.acknowledgedCount >= 20 }
        let moment = ContinuousClock.now
        if isKilled { leader.kill() } else { #expect(leader.stop() == 0) }
        servers = others
        try await eventually("another server leads") {
          servers.contains(where: ClusterServers.leads)
        }
        let count = writer.history.acknowledgedCount
        try await eventually("it takes writes") { writer.history.acknowledgedCount >= count + 20 }
        found.append(writer.history.longestPause(since: moment))
      }
      pauses.append((found[0], found[1]))
    }
    for (what, all) in [("killed", pauses.map(\.killed)), ("ended", pauses.map(\.ended))] {
      let sorted = all.sorted()
      let last = try #require(sorted.last)
      print(
        "takeovers: with the leader \(what), no write was acknowledged for "
          + "\(sorted[sorted.count / 2].rounded), \(last.rounded) at most, in \(sorted.count) cases"
      )
    }
  }
}
