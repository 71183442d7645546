/// One of several databases that do the same work in turns.
struct Contestant {
  let name: String
  /// Does the work once and returns its rate; higher is better.
  let round: () async throws -> Double
}
