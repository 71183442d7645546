/// A workload: its name, the row of the table of goals that it belongs to, a sentence that describes it, and
/// its comparisons.
struct Workload: Sendable {
  let name: String
  /// Such as "W1"; nil for a workload without a goal.
  let row: String?
  let sentence: String
  let comparisons: [Comparison]

  init(_ name: String, row: String? = nil, _ sentence: String, _ comparisons: [Comparison]) {
    self.name = name
    self.row = row
    self.sentence = sentence
    self.comparisons = comparisons
  }

  static let all: [Workload] = [
    .sets, .durable, .fanOut, .counters, .reopen, .checkpoint, .reads, .top, .space, .listeners,
    .growth, .typed, .sizes, .tree, .blog, .serve, .synced, .clustered, .rules, .attacks,
  ]
}

/// Contestants that do the same work in turns.
struct Comparison: Sendable {
  let name: String
  /// What rates count, in the plural.
  let noun: String
  let contestants: [Contestant]
  /// How often each contestant has its turn in a round.
  let turnsPerRound: Int

  /// Leaves out the contestants that are nil: peers that this build does not have.
  ///
  /// - Parameter turnsPerRound: more than one if the machine disturbs turns for seconds, as a disk does that
  ///   others use as well. Turns are short then.
  init(_ name: String, _ noun: String, turnsPerRound: Int = 1, _ contestants: [Contestant?]) {
    self.name = name
    self.noun = noun
    self.turnsPerRound = turnsPerRound
    self.contestants = contestants.compactMap(\.self)
  }
}
