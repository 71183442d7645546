import DendroCrashHarness
import Foundation
import DendroTestSupport
import Testing

/// The scenarios of the crash lab, each a test case of its own.
@Suite("Scenarios")
struct ScenarioTests {
  /// Runs on a thread of its own: scenarios wait, and the pool of tasks has no thread to spare.
  private static func run(_ scenario: Scenario) async throws {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try scenario.run() })
      }
    }
  }

  @Test("which processes may use a directory, and foreign files", arguments: Openers.scenarios)
  func openers(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("single writes: limits, times, malformed payloads", arguments: Rules.scenarios)
  func rules(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("transactions, and writes that come between", arguments: Transactions.scenarios)
  func transactions(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("durability, a disk that refuses, closing", arguments: Promises.scenarios)
  func promises(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("the ends of the log and of its segments", arguments: Ends.scenarios)
  func ends(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("backups", arguments: Backups.scenarios)
  func backups(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("what happens between two calls of the engine", arguments: Moments.scenarios)
  func moments(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("history: what is kept, read and removed", arguments: Past.scenarios)
  func past(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("real files", arguments: RealFiles.scenarios)
  func realFiles(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("what the API reports to an application", arguments: Applications.scenarios)
  func applications(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("waits end, and completions come in order", arguments: Waiting.scenarios)
  func waiting(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("listeners, callback queues and iterators", arguments: Listeners.scenarios)
  func listeners(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("a wrong field under right checksums is refused", arguments: Forgeries.scenarios)
  func forgeries(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("misplaced files and records", arguments: MisplacedFiles.scenarios)
  func misplacedFiles(_ scenario: Scenario) async throws { try await Self.run(scenario) }

  @Test("every segment but the last has its seal, whatever crashed")
  func seals() async throws { try await Seals.sweep().check(every: Scale.stride(7)) }
}
