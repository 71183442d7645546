/// One of several databases that do the same work in turns.
struct Contestant {
  let name: String
  /// The size of the work, in what its rate counts.
  let count: Int
  /// Does the work once.
  let round: () async throws -> Cost
}
