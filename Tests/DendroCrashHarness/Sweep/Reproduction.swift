package import DendroTesting

/// What it takes to see one failure again: a job of a sweep, narrowed to what fails in it.
///
/// Its description is the command that does so; its words are what that command is given.
package struct Reproduction: Sendable, CustomStringConvertible {
  /// The sweep's `id`.
  package var sweep: String
  /// The job's number: the seed, if the sweep draws.
  package var job: UInt64
  /// Which steps of the job's workload are run, by their places; nil for all.
  package var kept: [Int]?
  /// One crash after the other: how far the trace went, and what became of what was pending. Empty
  /// for all that the job looks at.
  package var crashes: [Crash] = []
  /// Whether what leads to a failure is to be printed too.
  package var isExplained = false

  package struct Crash: Sendable {
    package var operation: Int
    package var state: CrashState

    package init(operation: Int, state: CrashState) {
      self.operation = operation
      self.state = state
    }
  }

  package init(_ sweep: String, _ job: UInt64) {
    self.sweep = sweep
    self.job = job
  }

  /// The same, narrowed to these crashes.
  package func at(_ crashes: [Crash]) -> Reproduction {
    var result = self
    result.crashes = crashes
    return result
  }

  package func at(_ operation: Int, _ state: CrashState) -> Reproduction {
    at([Crash(operation: operation, state: state)])
  }

  /// Those of the steps that are kept.
  package func kept<Step>(of steps: [Step]) -> [Step] {
    guard let kept else { return steps }
    return kept.filter(steps.indices.contains).map { steps[$0] }
  }

  // MARK: As words

  package var words: [String] {
    var words = [sweep, "\(job)"]
    if let kept { words.append("steps=\(Self.text(of: kept))") }
    for crash in crashes {
      words += ["\(crash.operation)", crash.state.fates.isEmpty ? "-" : "\(crash.state)"]
    }
    return words
  }

  package var description: String {
    "swift run -c release crashlab replay \(words.joined(separator: " "))"
  }

  /// Reads `words`; nil if they are none.
  package init?(words: [String]) {
    guard words.count >= 2, let job = UInt64(words[1]) else { return nil }
    self.init(words[0], job)
    var rest = words.dropFirst(2)
    if let first = rest.first, first.hasPrefix("steps=") {
      guard let kept = Self.places(in: first.dropFirst(6)) else { return nil }
      self.kept = kept
      rest = rest.dropFirst()
    }
    while let word = rest.popFirst() {
      guard let operation = Int(word), operation >= 0, let text = rest.popFirst() else {
        return nil
      }
      guard let state = text == "-" ? CrashState([]) : CrashState(text) else { return nil }
      crashes.append(Crash(operation: operation, state: state))
    }
  }

  /// `0-3,7`; `none` if there is none.
  private static func text(of places: [Int]) -> String {
    var ranges: [ClosedRange<Int>] = []
    for place in places {
      if let last = ranges.last, last.upperBound + 1 == place {
        ranges[ranges.count - 1] = last.lowerBound...place
      } else {
        ranges.append(place...place)
      }
    }
    if ranges.isEmpty { return "none" }
    return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
      .joined(separator: ",")
  }

  private static func places(in text: Substring) -> [Int]? {
    if text == "none" { return [] }
    if text.isEmpty { return nil }
    var places: [Int] = []
    for part in text.split(separator: ",") {
      let ends = part.split(separator: "-").map { Int($0) }
      guard let first = ends.first ?? nil, let last = ends.last ?? nil, ends.count <= 2,
        first <= last, last < 10_000_000
      else { return nil }
      places += first...last
    }
    return places
  }
}

extension SimulatedDisk {
  /// Prints the calls before a crash, if one crash is run alone.
  package func explain(_ point: CrashPoint, _ state: CrashState) {
    for (index, operation) in trace.prefix(point.operationCount).enumerated() {
      print("\(index + 1). \(operation)")
    }
    for (text, fate) in zip(point.pendingDescriptions, state.fates) {
      print("  pending: \(text): \(CrashState([fate]))")
    }
  }
}
