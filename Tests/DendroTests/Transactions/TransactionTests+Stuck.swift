@testable import Dendro
import DendroTestSupport
import Dispatch
import Foundation
import Testing

/// A block that does not return before it is let go.
final class StuckBlock: Sendable {
  private let isInside = DispatchSemaphore(value: 0)
  private let goesOn = DispatchSemaphore(value: 0)

  /// Starts a transaction, and waits until its block runs.
  func start(
    at ref: DatabaseReference, ended: @escaping @Sendable (String) -> Void = { _ in }
  ) async {
    await withCheckedContinuation { continuation in
      ref.runTransactionBlock({ [self] data in
        isInside.signal()
        goesOn.wait()
        goesOn.signal()
        data.value = "stuck"
        return .success(withValue: data)
      }) { ended(line($0, $1, $2)) }
      DendroTests.start { [self] in
        isInside.wait()
        continuation.resume()
      }
    }
  }

  func end() { goesOn.signal() }
}

extension TransactionTests {
  private static func set(_ value: Int) -> @Sendable (MutableData) -> TransactionResult {
    { data in
      data.value = value
      return .success(withValue: data)
    }
  }

  @Test("a stuck block holds up the transactions at its location, above and below, and no others")
  func stuck() async throws {
    let database = Database.inMemory()
    let root = database.reference()
    let block = StuckBlock()
    await block.start(at: root.child("a/b"))
    let order = Shared<[String]>([])
    plainly {
      for path in ["a/b", "a", "a/b/c"] {
        root.child(path).runTransactionBlock(Self.set(1)) { _, _, _ in
          order.withLock { $0.append(path) }
        }
      }
    }
    // Each is stuck, too: every one of them gets its own thread.
    let others = (0..<5).map { _ in StuckBlock() }
    for (number, other) in others.enumerated() { await other.start(at: root.child("c/\(number)")) }
    for number in 0..<20 {
      try await root.child("d/\(number % 3)").runTransactionBlock(Self.set(number))
    }
    #expect(try await root.child("d").getData().typedValue == [18, 19, 17])
    #expect(order.value.isEmpty)
    for other in others { other.end() }
    block.end()
    try await root.runTransactionBlock { _ in .abort() }
    await settle(database)
    #expect(order.value == ["a/b", "a", "a/b/c"])
    #expect(try await root.child("c/4").getData().string == "stuck")
    #expect(try await root.child("a").getData().typedValue == ["b": ["c": 1]])
  }

  @Test("closing ends a stuck transaction and those behind it, while its block still runs")
  func stuckAndClosed() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("a")
    let block = StuckBlock()
    let ending = Shared<String?>(nil)
    await block.start(at: ref) { line in ending.withLock { $0 = line } }
    let waiting = Task { try await ref.runTransactionBlock(Self.set(1)).0 }
    let above = Task { try await database.reference().transaction { $0.value = 2 } }
    while database.transactions.count < 3 { await Task.yield() }
    try await database.close()
    for result in [await waiting.result.map { _ in }, await above.result] {
      #expect { try result.get() } throws: { ($0 as? DatabaseError)?.code == .closed }
    }
    // It came before the waiting ones were ended.
    await settle(database)
    #expect(ending.value == "DatabaseClosed, false, nil")
    block.end()
  }

  @Test(
    "if its task is cancelled, a transaction ends at once and writes nothing, unless it is admitted"
  )
  func cancelling() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("a")
    let isInside = DispatchSemaphore(value: 0)
    let goesOn = DispatchSemaphore(value: 0)
    let running = Task {
      try await ref.transaction { data in
        database.reference().child("beside").setValue("written")
        isInside.signal()
        goesOn.wait()
        data.value = "cancelled"
      }
    }
    await withCheckedContinuation { continuation in
      start {
        isInside.wait()
        continuation.resume()
      }
    }
    let waiting = Task { try await ref.transaction { $0.value = "cancelled" } }
    while database.transactions.count < 2 { await Task.yield() }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    running.cancel()
    await #expect(throws: CancellationError.self) { try await running.value }
    goesOn.signal()
    let (_, snapshot) = try await ref.runTransactionBlock { .success(withValue: $0) }
    #expect(!snapshot.exists())
    #expect(try await database.reference().child("beside").getData().string == "written")
  }

  @Test("a transaction that takes too long ends with an error, and the log names its location")
  func timeLimit() async throws {
    var options = DatabaseOptions()
    options.transactionTimeLimit = .milliseconds(3500)
    options.transactionReportTime = .milliseconds(100)
    let lines = Shared<[String]>([])
    options.logging = { line in
      guard line.level == .warning else { return }
      lines.withLock { $0.append("\(line.message) at \(line.metadata["location"] ?? "")") }
    }
    let database = Database.inMemory(options: options)
    let ref = database.reference().child("rooms/7")
    let block = StuckBlock()
    let ending = Shared<String?>(nil)
    await block.start(at: ref) { line in ending.withLock { $0 = line } }
    let error = await failure { try await ref.transaction { $0.value = 1 } }
    #expect(error?.code == .timedOut)
    #expect(
      error?.message
        == "the transaction at /rooms/7 took longer than 3.5 seconds, its limit, and has written nothing"
    )
    block.end()
    let (_, snapshot) = try await ref.runTransactionBlock { .success(withValue: $0) }
    #expect(!snapshot.exists())
    await settle(database)
    #expect(ending.value == "TransactionTimedOut, false, nil")
    try await database.close()
    #expect(
      lines.value
        == ["the block of a transaction has been running for 0.1 seconds at /rooms/7"])
  }
}
