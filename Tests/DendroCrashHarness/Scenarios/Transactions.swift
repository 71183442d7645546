import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// Transactions, and other writes that come between.
package enum Transactions {
  package static let scenarios = [
    Scenario("overtaken once", overtaken),
    Scenario("overtaken again and again", reservation),
    Scenario("a block that waits for the writer that waits for it", timeout),
    Scenario("writers that do not wait", runLimit),
    Scenario("a block that writes", blockWrite),
    Scenario("a block that writes on the short way", blockEdit),
    Scenario("a block that writes without end", manyBlockWrites),
  ]

  private static let place = Path("n")

  /// Adds one to what is at the place; `during` gets the number of the run.
  ///
  /// - Returns: how often the block ran, and whether the transaction was refused.
  private static func addOne(to engine: Engine, during: (Int) -> Void) -> (
    runs: Int, isRefused: Bool
  ) {
    var runs = 0
    let isRefused = Mutex(false)
    engine.transact(at: place, refused: { _ in isRefused.withLock { $0 = true } }) { input in
      runs += 1
      // A transaction that is never given up must not run for ever here.
      if runs > 60 { return TransactionDecision(nil) { _ in } }
      during(runs)
      guard case .integer(let value)? = input.scalar ?? .integer(0) else {
        return TransactionDecision(nil) { _ in }
      }
      return TransactionDecision(Draft(.set(place, Node(.integer(value + 1))))) { _ in }
    }
    engine.pump()
    return (runs, isRefused.withLock { $0 })
  }

  /// Another thread writes to the place.
  private static func write(_ value: Int, to engine: Engine) -> DispatchSemaphore {
    let isDone = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      engine.submit(Draft(.set(place, Node(.integer(Int64(value))))), completion: nil)
      isDone.signal()
    }
    return isDone
  }

  private static func open(timeout: Duration = .seconds(1)) throws(EngineError) -> Engine {
    var options = EngineRecording.options()
    options.reservationTimeout = timeout
    return try EngineRecording.open(SimulatedDisk(seed: 1), options)
  }

  @Sendable private static func overtaken() throws {
    let engine = try open()
    let outcome = addOne(to: engine) { run in
      if run == 1 { write(10, to: engine).wait() }
    }
    let found = engine.integer(at: "n")
    try require(outcome.runs == 2 && found == 11, "\(outcome), and there is \(found ?? 0)")
  }

  /// No write comes between during the fourth run.
  @Sendable private static func reservation() throws {
    let engine = try open()
    let outcome = addOne(to: engine) { run in
      let isDone = write(run * 100, to: engine)
      if run <= 3 { isDone.wait() } else { _ = isDone.wait(timeout: .now() + .milliseconds(500)) }
    }
    try require(outcome.runs == 4 && !outcome.isRefused, "\(outcome)")
  }

  @Sendable private static func timeout() throws {
    let engine = try open(timeout: .milliseconds(20))
    let outcome = addOne(to: engine) { run in
      if run <= 4 { write(run * 100, to: engine).wait() }
    }
    let found = engine.integer(at: "n")
    try require(outcome.runs == 5 && found == 401, "\(outcome), and there is \(found ?? 0)")
  }

  @Sendable private static func runLimit() throws {
    let engine = try open(timeout: .zero)
    let outcome = addOne(to: engine) { run in write(run * 100, to: engine).wait() }
    try require(outcome.runs == 25 && outcome.isRefused, "\(outcome)")
  }

  @Sendable private static func blockWrite() throws {
    let engine = try open()
    let outcome = addOne(to: engine) { run in
      engine.submit(Draft(.set(place, Node(.integer(100)))), completion: nil)
    }
    let found = engine.integer(at: "n")
    try require(outcome.runs == 1 && found == 100, "\(outcome), and there is \(found ?? 0)")
  }

  @Sendable private static func blockEdit() throws {
    let engine = try open()
    let update = EncodedWrite(
      .update(.root, [.init(path: place, action: .increment(.integer(1000)))]))
    let outcome = addOne(to: engine) { run in
      // Lent for the time of the call: it has to be copied.
      Scalar.integer(100).withPacked { packed in
        place.storedBytes.withUnsafeBytes { path in
          let write = WriteView(.increment, at: path, body: packed, facts: WriteFacts())
          engine.submit(write, completion: nil)
        }
      }
      engine.submit(update, completion: nil)
    }
    let found = engine.integer(at: "n")
    try require(outcome.runs == 1 && found == 1101, "\(outcome), and there is \(found ?? 0)")
  }

  @Sendable private static func manyBlockWrites() throws {
    let engine = try open()
    let notes = Notes()
    let limit = 16_384
    _ = addOne(to: engine) { _ in
      for value in 0..<limit + 10 {
        engine.submit(
          Draft(.set(Path("own"), Node(.integer(Int64(value))))), completion: notes.completion)
      }
    }
    let refused = notes.all.count { $0 == "too many" }
    try require(refused == 10, "\(refused) were refused")
  }
}
