import DendroEngine
import DendroStorage
import DendroTesting
import Foundation

/// One situation, made by hand, and what must hold in it.
///
/// A scenario is library code and no test function, because it is run in two ways: by `ScenarioTests`, where
/// each is a case of a parameterised test, and by `crashlab`, which runs them as the jobs of a sweep in
/// processes of their own and so finds out which of them detects a mutant.
package struct Scenario: Sendable, CustomStringConvertible {
  package let name: String
  private let body: @Sendable () throws -> Void

  init(_ name: String, _ body: @escaping @Sendable () throws -> Void) {
    self.name = name
    self.body = body
  }

  package var description: String { name }

  /// - Throws: a `Violation`, or the error of a call that must not fail.
  package func run() throws { try body() }
}

/// What did not hold in a scenario.
package struct Violation: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

extension Sweep {
  /// A job for each scenario.
  static func scenarios(_ id: String, _ scenarios: [Scenario]) -> Sweep {
    Sweep(id, unit: "scenarios", jobs: 0..<UInt64(scenarios.count)) { place in
      var tally = Tally(count: 1)
      let scenario = scenarios[Int(place.job)]
      do {
        try scenario.run()
      } catch {
        tally.fail(place, "\(scenario.name): \(error)")
      }
      return tally
    }
  }
}

// MARK: What must hold

/// Throws unless the condition holds; `found` says what there was instead.
func require(_ condition: Bool, _ found: @autoclosure () -> String) throws {
  if !condition { throw Violation(found()) }
}

/// Runs what must fail.
///
/// - Parameter found: what it means that nothing failed.
/// - Returns: the error.
@discardableResult
func requireError<R, E>(_ found: String, _ body: () throws(E) -> R) throws -> E {
  do throws(E) {
    _ = try body()
  } catch {
    return error
  }
  throw Violation(found)
}

/// Runs `body`; what it throws says where it was.
func inContext<R>(_ context: @autoclosure () -> String, _ body: () throws -> R) throws -> R {
  do {
    return try body()
  } catch {
    throw Violation("\(context()): \(error)")
  }
}

/// Opening must be refused as damaged.
func requireRefusal(of disk: SimulatedDisk, _ context: @autoclosure () -> String = "opened") throws
{
  try inContext(context()) {
    try requireRefusal { () throws(EngineError) in try EngineRecording.open(disk) }
  }
}

/// What opens must be refused as damaged.
func requireRefusal(_ open: () throws(EngineError) -> Engine) throws {
  let engine: Engine
  do throws(EngineError) {
    engine = try open()
  } catch {
    guard error.isDamage else { throw Violation("refused as \(error)") }
    return
  }
  throw Violation("served up to write \(engine.head.lsn)")
}

/// Opens the directory once it is free: the thread of an engine closes it a moment after the last reference
/// was released.
func openOnceFree(_ disk: SimulatedDisk) throws -> Engine {
  for _ in 0..<1000 {
    do throws(EngineError) {
      return try EngineRecording.open(disk)
    } catch {
      guard case .storage(.locked) = error else { throw error }
      Thread.sleep(forTimeInterval: 0.01)
    }
  }
  throw Violation("the directory is still locked")
}
