import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// Transactions, and other writes that come between.
package enum Transactions {
  package static let sweep = Sweep.cases(
    "transactions",
    [
      Case("overtaken once", overtaken),
      Case("overtaken again and again", reservation),
      Case("a block that waits for the writer who waits for it", patience),
      Case("writers who do not wait", runLimit),
      Case("a block that writes", heldWrite),
      Case("a block that writes without end", heldWrites),
    ])

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
      // Nobody knows for how long.
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

  private static func open(patience: Duration = .seconds(1)) throws(EngineError) -> Engine {
    var options = EngineRecording.options()
    options.reservationTimeout = patience
    return try EngineRecording.open(SimulatedDisk(seed: 1), options)
  }

  @Sendable private static func overtaken() throws -> String? {
    let engine = try open()
    let outcome = addOne(to: engine) { run in
      if run == 1 { write(10, to: engine).wait() }
    }
    let found = engine.integer(at: "n")
    return outcome.runs == 2 && found == 11 ? nil : "\(outcome), and there is \(found ?? 0)"
  }

  /// The fourth run finds nobody who comes between.
  @Sendable private static func reservation() throws -> String? {
    let engine = try open()
    let outcome = addOne(to: engine) { run in
      let isDone = write(run * 100, to: engine)
      if run <= 3 { isDone.wait() } else { _ = isDone.wait(timeout: .now() + .milliseconds(500)) }
    }
    return outcome.runs == 4 && !outcome.isRefused ? nil : "\(outcome)"
  }

  @Sendable private static func patience() throws -> String? {
    let engine = try open(patience: .milliseconds(20))
    let outcome = addOne(to: engine) { run in
      if run <= 4 { write(run * 100, to: engine).wait() }
    }
    let found = engine.integer(at: "n")
    return outcome.runs == 5 && found == 401 ? nil : "\(outcome), and there is \(found ?? 0)"
  }

  @Sendable private static func runLimit() throws -> String? {
    let engine = try open(patience: .zero)
    let outcome = addOne(to: engine) { run in write(run * 100, to: engine).wait() }
    return outcome.runs == 25 && outcome.isRefused ? nil : "\(outcome)"
  }

  @Sendable private static func heldWrite() throws -> String? {
    let engine = try open()
    let outcome = addOne(to: engine) { run in
      engine.submit(Draft(.set(place, Node(.integer(100)))), completion: nil)
    }
    let found = engine.integer(at: "n")
    return outcome.runs == 1 && found == 100 ? nil : "\(outcome), and there is \(found ?? 0)"
  }

  @Sendable private static func heldWrites() throws -> String? {
    let engine = try open()
    let told = Told()
    let limit = 16_384
    _ = addOne(to: engine) { _ in
      for value in 0..<limit + 10 {
        engine.submit(
          Draft(.set(Path("own"), Node(.integer(Int64(value))))), completion: told.completion)
      }
    }
    let refused = told.all.count { $0 == "too many" }
    return refused == 10 ? nil : "\(refused) were refused"
  }
}
