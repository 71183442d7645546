import Dendro
import Synchronization
import Testing

// What the samples of articles have around them, so that they run as they stand there: a file of samples that opens a
// directory of an app says `private typealias Database = SampleDatabase`, one that prints
// `private func print(_ items: Any...) { SampleOutput.print(items) }`.

/// Stands for `Database` where a sample opens a directory outside of the tests: makes the same calls for a directory
/// below `root`.
enum SampleDatabase {
  @TaskLocal static var root = ""

  static func open(at path: String) async throws -> Database {
    try await Database.open(at: "\(root)/\(path)")
  }

  static func open(following path: String) async throws -> Database {
    try await Database.open(following: "\(root)/\(path)")
  }

  /// In memory: the default database is that of the user.
  static func database() -> Database { Database.inMemory() }

  static func inMemory() -> Database { Database.inMemory() }
}

/// What samples print.
final class SampleOutput: Sendable {
  @TaskLocal static var current: SampleOutput?

  private let lines = Mutex<[String]>([])

  static func print(_ items: [Any]) {
    let line = items.map { "\($0)" }.joined(separator: " ")
    current?.lines.withLock { $0.append(line) }
  }

  /// Runs a sample that goes on until its task is cancelled, up to the moment when it has printed a line.
  func run(
    until line: String, _ sample: @escaping @Sendable () async throws -> Void
  ) async throws {
    try await SampleOutput.$current.withValue(self) {
      try await runEndless(until: { lines.withLock { $0.contains(line) } }, sample)
    }
  }
}

/// Runs a sample that goes on until its task is cancelled, up to the moment when something has happened.
func runEndless(
  until hasHappened: () -> Bool, _ sample: @escaping @Sendable () async throws -> Void
) async throws {
  let isOver = Mutex(false)
  let running = Task {
    defer { isOver.withLock { $0 = true } }
    try await sample()
  }
  while !hasHappened(), !isOver.withLock({ $0 }) { await Task.yield() }
  #expect(hasHappened(), "the sample has ended before")
  running.cancel()
  try await running.value
}
