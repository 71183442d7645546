import DendroEngine
import DendroStorage

/// What a repair found, saved and lost.
struct RepairReport {
  let salvage: Salvage
  /// Why the database cannot be opened; nil if it can.
  let refusal: String?
  /// Nil if nothing is to be saved.
  var outcome: Salvage.Outcome?
  /// The new directory, once it is written.
  var target: String?

  /// As many damaged places as the text shows.
  private static let problemLimit = 10
  /// As many places in doubt as it shows.
  private static let doubtLimit = 20

  init(salvage: Salvage, refusal: String?) {
    self.salvage = salvage
    self.refusal = refusal
  }

  var isDamaged: Bool {
    refusal != nil || damage.count > 0 || salvage.checkpoints.contains { $0.problem != nil }
  }
  private var damage: [LogCursor.Problem] { salvage.problems.filter { !$0.isTail } }
  /// Whether the tree is as it was after the last write.
  var isWhole: Bool { salvage.plan.lost.isEmpty && salvage.missingEnd == nil }

  // MARK: Text

  func print(to terminal: Terminal) throws {
    let lines = LogLines(terminal: terminal, isJSON: false)
    for problem in salvage.problems.prefix(Self.problemLimit) {
      try terminal.report(lines.line(problem))
    }
    if salvage.problems.count > Self.problemLimit {
      let rest = Format.count(salvage.problems.count - Self.problemLimit, "place")
      try terminal.report(terminal.colored("damage: and \(rest) more (--json lists all)", .red))
    }
    for checkpoint in salvage.checkpoints {
      guard let problem = checkpoint.problem else { continue }
      try terminal.report(terminal.colored("damage: \(problem)", .red))
    }
    if !isDamaged {
      try terminal.print(terminal.colored("nothing is damaged, and nothing was written", .green))
      return
    }
    if let refusal, damage.isEmpty {
      try terminal.report(terminal.colored("damage: \(refusal)", .red))
    }
    guard salvage.plan.last > .zero else {
      try terminal.print(terminal.colored("nothing can be saved", .red))
      return
    }
    try printRanges(to: terminal)
    guard let outcome else { return }
    let plan = outcome.plan
    try Self.row(
      "tree",
      "\(Format.count(outcome.leafCount, "leaf")) as of write \(plan.last)"
        + (plan.gap == nil ? ", as it was then" : ", without the lost writes"), to: terminal)
    try Self.row("history", "from write \(plan.base) on", to: terminal)
    for doubt in outcome.doubts.prefix(Self.doubtLimit) {
      try Self.row(
        "in doubt",
        terminal.colored("\(doubt.path)", .cyan) + "  \(Format.count(doubt.leafCount, "leaf"))",
        to: terminal)
    }
    if outcome.doubts.count > Self.doubtLimit {
      try Self.row(
        "in doubt",
        "and \(Format.count(outcome.doubts.count - Self.doubtLimit)) places more (--json lists all)",
        to: terminal)
    }
    if let gap = plan.gap, !outcome.doubts.isEmpty {
      try terminal.print(
        "              (not set behind write \(gap.upperBound): they may be older than they should be)"
      )
    }
    try printEnd(to: terminal)
  }

  private func printRanges(to terminal: Terminal) throws {
    let plan = salvage.plan
    try Self.row("saved", "\(Self.writes(salvage.saved))", to: terminal)
    if !plan.lost.isEmpty {
      try Self.row("lost", terminal.colored(Self.writes(plan.lost), .red), to: terminal)
    }
    if let first = salvage.missingEnd {
      try Self.row(
        "lost", terminal.colored("write \(first) and those behind it; how many is not known", .red),
        to: terminal)
    }
    if !salvage.lostHistory.isEmpty {
      try Self.row(
        "lost history",
        "\(Self.writes(salvage.lostHistory)), which a checkpoint contains", to: terminal)
    }
  }

  /// Where it was written.
  func printEnd(to terminal: Terminal) throws {
    guard let target else { return }
    try Self.row("written", "to \(target); read back and good", to: terminal)
  }

  private static func row(_ name: String, _ value: String, to terminal: Terminal) throws {
    try terminal.print("\(name.padded(to: 14))\(value)")
  }

  private static func writes(_ ranges: [ClosedRange<UInt64>]) -> String {
    let isOne = ranges.count == 1 && ranges[0].lowerBound == ranges[0].upperBound
    return (isOne ? "write " : "writes ") + Format.ranges(ranges)
  }

  // MARK: JSON

  func json(_ directory: String) -> JSONValue {
    let plan = salvage.plan
    let doubts = (outcome?.doubts ?? []).map { doubt -> JSONValue in
      .object([("path", .string("\(doubt.path)")), ("leaves", .count(doubt.leafCount))])
    }
    let checkpoints = salvage.checkpoints.map { checkpoint -> JSONValue in
      .object([
        ("lsn", .unsigned(checkpoint.lsn.rawValue)),
        ("problem", checkpoint.problem.map { .string($0) } ?? .null),
      ])
    }
    let damage = self.damage.map { problem -> JSONValue in
      .object([
        ("file", .string(problem.path)), ("offset", .unsigned(problem.offset)),
        ("expected", .string(problem.expected)), ("found", .string(problem.found)),
        ("skippedBytes", .unsigned(problem.skippedByteCount)),
      ])
    }
    let last: JSONValue = plan.last == .zero ? .null : .unsigned(plan.last.rawValue)
    var members: [(String, JSONValue)] = [
      ("directory", .string(directory)), ("damaged", .bool(isDamaged)),
      ("target", target.map { .string($0) } ?? .null), ("whole", .bool(isWhole)),
      ("lastLSN", last),
    ]
    members += [
      ("historyFrom", outcome.map { .unsigned($0.plan.base.rawValue) } ?? .null),
      ("leaves", outcome.map { .count($0.leafCount) } ?? .null),
      ("hash", outcome.map { .string(Survey.hash($0.contentHash)) } ?? .null),
      ("saved", Self.json(salvage.saved)), ("lost", Self.json(plan.lost)),
    ]
    members += [
      ("lostFrom", salvage.missingEnd.map { .unsigned($0.rawValue) } ?? .null),
      ("lostHistory", Self.json(salvage.lostHistory)),
      ("proven", Self.json(salvage.provenRanges)), ("doubts", .array(doubts)),
      ("checkpoints", .array(checkpoints)), ("damage", .array(damage)),
      ("refusal", refusal.map { .string($0) } ?? .null),
    ]
    return .object(members)
  }

  private static func json(_ ranges: [ClosedRange<UInt64>]) -> JSONValue {
    .array(
      ranges.map { range in
        .object([("first", .unsigned(range.lowerBound)), ("last", .unsigned(range.upperBound))])
      })
  }
}

extension Salvage {
  /// The writes that can be read, or that a good checkpoint contains.
  var saved: [ClosedRange<UInt64>] {
    var ranges = readable
    if let newest = checkpoints.last(where: { $0.problem == nil })?.lsn.rawValue, newest > 0 {
      ranges = [1...newest] + ranges.filter { $0.upperBound > newest }
    }
    var merged: [ClosedRange<UInt64>] = []
    for range in ranges {
      if let last = merged.last, last.upperBound + 1 >= range.lowerBound {
        merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
      } else {
        merged.append(range)
      }
    }
    return merged
  }
}
