import Foundation

/// One way to do the work of a comparison: of Dendro, of a peer, or of the system alone.
///
/// Each turn is a process of its own, so that no contestant inherits memory, threads or files that another
/// one left behind.
struct Contestant: Sendable {
  /// Begins with the name of the database, and a comma before further words.
  let name: String
  /// Makes what `measure` needs, in a process that ends before the one that measures.
  var prepare: (@Sendable (Turn) async throws -> Void)?
  /// Whether that process kills itself when it is ready, as a crash would.
  var isKilledAfterPreparing = false
  /// Says why it is left out; nil if it is not. It is asked in the process that starts the turns.
  var lack: (@Sendable () -> String?)?
  /// Does the work once, and checks its results.
  let measure: @Sendable (Turn) async throws -> Measurement

  init(
    _ name: String, prepare: (@Sendable (Turn) async throws -> Void)? = nil,
    isKilledAfterPreparing: Bool = false,
    measure: @escaping @Sendable (Turn) async throws -> Measurement
  ) {
    self.name = name
    self.prepare = prepare
    self.isKilledAfterPreparing = isKilledAfterPreparing
    self.measure = measure
  }

  var isDendro: Bool { name.split(separator: ",").first == "dendro" }
}

/// What a contestant gets for one turn.
struct Turn: Sendable {
  /// A path for files. Nothing exists there when the turn begins.
  let directory: URL
  let isQuick: Bool

  /// Scales the size of the work: `--quick` does a twentieth.
  func scaled(_ count: Int) -> Int { isQuick ? max(1, count / 20) : count }
}
