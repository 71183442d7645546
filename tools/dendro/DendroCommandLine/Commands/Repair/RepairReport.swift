import DendroEngine
import DendroServer
import DendroStorage
import DendroTree

/// What a repair found, saved and lost.
struct RepairReport {
  let salvage: Salvage
  /// What is to be saved.
  let plan: Salvage.Plan
  /// Why the database cannot be opened; nil if it can.
  let refusal: String?
  /// Nil if nothing is to be saved.
  var outcome: Salvage.Outcome?
  /// The new directory, once it is written.
  var target: String?
  /// What has no place in the tree; nil if there is nothing.
  var apart: ApartFile?
  /// Whether that was written.
  private var isApartWritten = false

  /// As many damaged places as the text shows.
  private static let problemLimit = 10
  /// As many places in doubt as it shows.
  private static let doubtLimit = 20

  init(salvage: Salvage, plan: Salvage.Plan, refusal: String?) {
    self.salvage = salvage
    self.plan = plan
    self.refusal = refusal
  }

  mutating func writeApart() throws {
    guard let apart else { return }
    try apart.write()
    isApartWritten = true
  }

  var isDamaged: Bool {
    refusal != nil || damage.count > 0 || salvage.checkpoints.contains { $0.problem != nil }
      || salvage.mendings.contains { $0.state == .mends || $0.state == .exceeded }
  }
  /// Whether writes are left out that could be read, since others before them cannot.
  private var isBeforeGap: Bool { plan.last < salvage.plan.last }
  private var saved: [ClosedRange<UInt64>] {
    let last = plan.last.rawValue
    guard isBeforeGap else { return salvage.saved }
    return salvage.saved.filter { $0.lowerBound <= last }.map { $0.clamped(to: 0...last) }
  }
  private var damage: [LogCursor.Problem] { salvage.problems.filter { !$0.isTail } }
  /// Whether nothing is missing that the files prove.
  var isWhole: Bool {
    (apart?.leafCount ?? 0) == 0 && (outcome?.isWhole ?? plan.lost.isEmpty)
      && salvage.missingEnd == nil && (plan.last > .zero || !isDamaged)
  }

  // MARK: Text

  func print(to terminal: Terminal) throws {
    let lines = LogLines(terminal: terminal, isJSON: false)
    let places = salvage.problems.filter { !$0.dependsOnDamage }
    for problem in places.prefix(Self.problemLimit) {
      try terminal.report(lines.line(problem))
    }
    if places.count > Self.problemLimit {
      let rest = Format.count(places.count - Self.problemLimit, "place")
      try terminal.report(terminal.colored("damage: and \(rest) more (--json lists all)", .red))
    }
    if places.count < salvage.problems.count {
      try terminal.report(lines.unreadable(salvage.problems.count - places.count))
    }
    for checkpoint in salvage.checkpoints {
      guard let problem = checkpoint.problem else { continue }
      let rest = checkpoint.partial.map { "; \(Self.rest(of: $0))" } ?? ""
      try terminal.report(terminal.colored("damage: \(problem)\(rest)", .red))
    }
    try printParity(to: terminal)
    if !isDamaged {
      let what = salvage.mendings.contains { $0.isDamage } ? "no data is" : "nothing is"
      try terminal.report(terminal.colored("\(what) damaged, and nothing was written", .green))
      return try printProof(to: terminal)
    }
    if let refusal, damage.isEmpty {
      try terminal.report(terminal.colored("damage: \(refusal)", .red))
    }
    try printApart(to: terminal)
    guard plan.last > .zero else {
      let what = apart == nil ? "nothing" : "nothing else"
      try terminal.report(terminal.colored("\(what) can be saved", .red))
      return
    }
    try printRanges(to: terminal)
    guard let outcome else { return }
    try print(outcome, to: terminal)
    if isWhole { try printProof(to: terminal) }
    try printEnd(to: terminal)
  }

  /// What the parity of files says.
  private func printParity(to terminal: Terminal) throws {
    for mending in salvage.mendings where mending.isDamage {
      for message in mending.messages {
        try terminal.report(terminal.colored("damage: \(message)", .red))
      }
      if let text = mending.mendedText { try Self.row("mended", text, to: terminal) }
    }
  }

  private func print(_ outcome: Salvage.Outcome, to terminal: Terminal) throws {
    let plan = outcome.plan
    let how =
      !outcome.holes.isEmpty
      ? ", without what is lost"
      : plan.gap == nil ? ", as it was then" : ", without the lost writes"
    try Self.row(
      "tree", "\(Format.count(outcome.leafCount, "leaf")) as of write \(plan.last)\(how)",
      to: terminal)
    try Self.row(
      "history",
      "from write \(plan.historyStart) on"
        + (plan.gap == nil && outcome.holes.isEmpty ? "" : ", without what is lost"), to: terminal)
    for hole in outcome.holes.prefix(Self.doubtLimit) {
      try Self.row("lost", terminal.colored("\(hole)", .red), to: terminal)
    }
    if outcome.holes.count > Self.doubtLimit {
      let rest = Format.count(outcome.holes.count - Self.doubtLimit, "place")
      try Self.row("lost", "and \(rest) more (--json lists all)", to: terminal)
    }
    for doubt in outcome.doubts.prefix(Self.doubtLimit) {
      let all = doubt.isWhole && doubt.leafCount > 1 ? "all " : ""
      try Self.row(
        "in doubt",
        terminal.colored("\(doubt.path)", .cyan)
          + "  \(all)\(Format.count(doubt.leafCount, "leaf"))",
        to: terminal)
    }
    if outcome.doubts.count > Self.doubtLimit {
      let rest = Format.count(outcome.doubts.count - Self.doubtLimit, "place")
      try Self.row("in doubt", "and \(rest) more (--json lists all)", to: terminal)
    }
    if outcome.isSystemInDoubt { try printWithdrawn(outcome.withdrawn, to: terminal) }
    guard !outcome.doubts.isEmpty else { return }
    let why =
      plan.gap.map { gap in
        "not set behind write \(gap.upperBound): a lost write may have changed or removed them, and "
          + "what a lost write added is missing"
      }
      ?? "taken from before the damaged checkpoint: they may have been changed or removed since, and what was "
      + "added since is missing"
    try Self.row("", "(\(why))", to: terminal)
  }

  /// What is kept beside the data, and in doubt: of a server, what clients had registered for their end.
  private func printWithdrawn(_ system: Node, to terminal: Terminal) throws {
    let sync = system.node(at: SyncedClient.root)
    if case .string(let server)? = sync.child(SyncedClient.server).scalar {
      let count = sync.child(SyncedClient.pending).childCount
      return try Self.row(
        "in doubt",
        "the \(Format.count(count, "write")) for \("\(server)".printable): it may have answered some; all are sent again",
        to: terminal)
    }
    if !system.node(at: ServerRules.rules).isEmpty {
      try Self.row(
        "locked",
        "the security rules are in doubt: until others are put, only administrators get in",
        to: terminal)
    }
    let kept = KeptOperations.all(in: system)
    guard !kept.isEmpty else {
      return try Self.row(
        "in doubt", "what a server keeps beside the data: the operations on disconnect",
        to: terminal)
    }
    try Self.row(
      "withdrawn",
      "the operations on disconnect of \(Format.count(kept.count, "session")): they may have been done or "
        + "cancelled", to: terminal)
    let lines = LogLines(terminal: terminal, isJSON: false)
    for operations in kept.prefix(Self.doubtLimit) {
      try Self.row("", lines.value(operations.write), to: terminal)
    }
    if kept.count > Self.doubtLimit {
      let rest = Format.count(kept.count - Self.doubtLimit, "session")
      try Self.row("", "and of \(rest) more (--json lists all)", to: terminal)
    }
  }

  private func printApart(to terminal: Terminal) throws {
    guard let apart else { return }
    let verb = isApartWritten ? "are in" : "would be in"
    if apart.leafCount > 0 {
      let leaves = Format.count(apart.leafCount, "leaf")
      try Self.row(
        "apart", "\(leaves) of unknown places, which nothing leads to, \(verb) \(apart.path)",
        to: terminal)
    }
    if apart.writeCount > 0 {
      let writes = Format.count(apart.writeCount, "write")
      try Self.row(
        "apart", "\(writes) of another history, under the same numbers, \(verb) \(apart.path)",
        to: terminal)
    }
  }

  /// Up to where the end of the log is proven.
  private func printProof(to terminal: Terminal) throws {
    let last = plan.last
    let proven = salvage.provenUpTo
    try Self.row(
      "whole",
      "as far as the files say: write \(proven) is proven durable; if the log was cut off cleanly "
        + "behind write \(last), nothing shows it", to: terminal)
  }

  private static func rest(of checkpoint: PartialCheckpoint) -> String {
    let chunks =
      (checkpoint.lacksEnd ? "the " : "its ") + Format.count(checkpoint.chunkCount, "chunk")
      + (checkpoint.lacksEnd ? " before it" : "")
    let lost =
      switch checkpoint.lostChunkCount {
      case 0: "none of \(chunks) is lost"
      case 1: "1 of \(chunks) is lost"
      case let count: "\(Format.count(count)) of \(chunks) are lost"
      }
    return checkpoint.lacksEnd ? "its end is lost, and \(lost)" : lost
  }

  private func printRanges(to terminal: Terminal) throws {
    try Self.row("saved", "\(Self.writes(saved))", to: terminal)
    if !plan.lost.isEmpty {
      let source =
        salvage.provenByName.map {
          ", as the name of the checkpoint at LSN \($0) says, which cannot be read"
        } ?? ""
      try Self.row(
        isBeforeGap ? "left out" : "lost",
        terminal.colored(Self.writes(plan.lost) + (isBeforeGap ? "" : source), .red), to: terminal)
    }
    if let first = salvage.missingEnd {
      try Self.row(
        "lost",
        terminal.colored(
          "the writes from \(first) on, if there were any: the log behind write \(first.previous) is missing",
          .red), to: terminal)
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
    try terminal.report("\(name.padded(to: 14))\(value)", hanging: 14)
  }

  private static func writes(_ ranges: [ClosedRange<UInt64>]) -> String {
    let isOne = ranges.count == 1 && ranges[0].lowerBound == ranges[0].upperBound
    return (isOne ? "write " : "writes ") + Format.ranges(ranges)
  }

  // MARK: JSON

  /// The states that are proven, the last one also if only several damaged files prove it together.
  private var provenRanges: [ClosedRange<UInt64>] {
    var ranges = salvage.provenRanges
    let last = plan.last.rawValue
    guard let outcome, outcome.isCertain, ranges.last.map({ $0.upperBound < last }) ?? true else {
      return ranges
    }
    if let range = ranges.last, range.upperBound + 1 == last {
      ranges[ranges.count - 1] = range.lowerBound...last
    } else {
      ranges.append(last...last)
    }
    return ranges
  }

  func json(_ directory: String) -> JSONValue {
    let doubts = (outcome?.doubts ?? []).map { doubt -> JSONValue in
      .object([
        ("path", .string("\(doubt.path)")), ("leaves", .count(doubt.leafCount)),
        ("all", .bool(doubt.isWhole)),
      ])
    }
    let holes = (outcome?.holes ?? []).map { hole -> JSONValue in
      .object([
        ("path", .string("\(hole.path)")),
        ("first", hole.first.map { .string("\($0)") } ?? .null),
        ("end", hole.end.map { .string("\($0)") } ?? .null),
        ("children", hole.childCount.map { .count($0) } ?? .null),
      ])
    }
    let checkpoints = salvage.checkpoints.map { checkpoint -> JSONValue in
      .object([
        ("lsn", .unsigned(checkpoint.lsn.rawValue)),
        ("problem", checkpoint.problem.map { .string($0) } ?? .null),
        ("chunks", checkpoint.partial.map { .count($0.chunkCount) } ?? .null),
        ("lostChunks", checkpoint.partial.map { .count($0.lostChunkCount) } ?? .null),
        ("lacksEnd", checkpoint.partial.map { .bool($0.lacksEnd) } ?? .null),
      ])
    }
    let damage = self.damage.map { problem -> JSONValue in
      .object([
        ("file", .string(problem.path)),
        ("offset", problem.isMissing ? .null : .unsigned(problem.offset)),
        ("missing", problem.isMissing ? .string(problem.expected) : .null),
        ("expected", .string(problem.expected)), ("found", .string(problem.found)),
        ("skippedBytes", .unsigned(problem.skippedByteCount)),
      ])
    }
    let withdrawn = KeptOperations.all(in: outcome?.withdrawn ?? .empty).map { kept in
      JSONValue.object(
        [("session", .string(kept.session))] + LogLines.members(of: kept.write))
    }
    let end = outcome?.plan.last ?? plan.last
    let last: JSONValue = end == .zero ? .null : .unsigned(end.rawValue)
    var members: [(String, JSONValue)] = [
      ("directory", .string(directory)), ("damaged", .bool(isDamaged)),
      ("target", target.map { .string($0) } ?? .null), ("whole", .bool(isWhole)),
      ("asFarAsTheFilesSay", .bool(isWhole)),
      ("provenUpTo", .unsigned(salvage.provenUpTo.rawValue)), ("lastLSN", last),
    ]
    members += [
      ("historyFrom", outcome.map { .unsigned($0.plan.historyStart.rawValue) } ?? .null),
      ("leaves", outcome.map { .count($0.leafCount) } ?? .null),
      ("hash", outcome.map { .string(Survey.hash($0.contentHash)) } ?? .null),
      ("saved", Self.json(saved)), ("lost", Self.json(plan.lost)),
    ]
    members += [
      ("lostFrom", salvage.missingEnd.map { .unsigned($0.rawValue) } ?? .null),
      ("lostByName", salvage.provenByName.map { .unsigned($0.rawValue) } ?? .null),
      ("lostHistory", Self.json(salvage.lostHistory)),
      ("proven", Self.json(provenRanges)), ("doubts", .array(doubts)),
      ("holes", .array(holes)),
      ("apartLeaves", .count(apart?.leafCount ?? 0)),
      ("apartWrites", .count(apart?.writeCount ?? 0)),
      ("apartFile", isApartWritten ? .string(apart?.path ?? "") : .null),
      ("secondRootInDoubt", .bool(outcome?.isSystemInDoubt ?? false)),
      ("withdrawnOnDisconnect", .array(withdrawn)),
      (
        "withdrawnRules",
        .bool(!(outcome?.withdrawn ?? .empty).node(at: ServerRules.rules).isEmpty)
      ),
      ("checkpoints", .array(checkpoints)), ("damage", .array(damage)),
      ("parity", salvage.mendings.json),
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
