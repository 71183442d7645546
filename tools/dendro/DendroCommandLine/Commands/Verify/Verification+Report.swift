import DendroStorage

extension Verification {
  var json: JSONValue {
    let damage = self.damage.map { one -> JSONValue in
      .object([
        ("message", .string(one.message)), ("file", one.file.map { .string($0) } ?? .null),
        ("offset", one.offset.map { .unsigned($0) } ?? .null),
        ("missing", one.missing.map { .string($0) } ?? .null),
        ("dependsOnDamage", .bool(one.dependsOnDamage)),
      ])
    }
    var members: [(String, JSONValue)] = [
      ("good", .bool(damage.isEmpty)), ("quick", .bool(isQuick)),
      ("lastLSN", .unsigned(lastLSN.rawValue)),
      ("leaves", leafCount.map { .count($0) } ?? .null),
      ("hash", contentHash.map { .string(Survey.hash($0)) } ?? .null),
      ("secondRootHash", headHashes?.system.map { .string(Survey.hash($0)) } ?? .null),
    ]
    members += [
      ("segments", .count(segmentCount)), ("records", .count(recordCount)),
      ("writes", .unsigned(writeCount)), ("replayedWrites", .unsigned(replayedCount)),
      ("checkpoints", .count(checkpointCount)), ("comparedCheckpoints", .count(comparedCount)),
      ("parityFiles", .count(mendings.count)), ("parity", mendings.json),
      ("bytes", .unsigned(byteCount)), ("seconds", .number(seconds)),
      ("unfinishedEnd", tail.map { .string("\($0)") } ?? .null), ("damage", .array(damage)),
    ]
    return .object(members)
  }

  func print(to terminal: Terminal) throws {
    func row(_ name: String, _ value: String) throws {
      try terminal.print("\(name.padded(to: 14))\(value)")
    }
    try row(
      "log",
      "\(Format.count(segmentCount, "segment")), \(Format.count(recordCount, "record")), "
        + Format.count(writeCount, "write")
        + (isQuick ? "" : ", \(Format.count(replayedCount)) of them replayed"))
    try row(
      "checkpoints",
      "\(checkpointCount)" + (comparedCount > 0 ? ", \(comparedCount) compared with the log" : ""))
    if !mendings.isEmpty {
      let goodCount = mendings.count { !$0.isDamage }
      try row(
        "parity",
        "of \(Format.count(mendings.count, "file")), "
          + (goodCount == mendings.count ? "good" : "\(Format.count(goodCount)) of them good"))
      for mending in mendings {
        if let remark = mending.remark { try row("", remark) }
      }
    }
    let rate = UInt64(Double(byteCount) / max(seconds, 1e-6))
    try row(
      "read",
      "\(Format.bytes(byteCount)) in \(Format.seconds(seconds)), \(Format.bytes(rate)) a second")
    if let leafCount, let contentHash {
      try row("tree", "\(Format.count(leafCount, "leaf")) as of write \(lastLSN)")
      try row("hash", Survey.hash(contentHash))
      if let hash = headHashes?.system { try row("second root", "hash \(Survey.hash(hash))") }
    }
    if isQuick {
      try row("not checked", "what records and checkpoints say, behind their checksums")
    }
    if let tail { try row("end", "unfinished, as a crash or a running writer leaves it: \(tail)") }
    let limit = 20
    let places = damage.filter { !$0.dependsOnDamage }
    for one in places.prefix(limit) {
      try terminal.report(terminal.colored("damage: \(one.message)", .red))
    }
    if places.count > limit {
      let rest = Format.count(places.count - limit, "place")
      try terminal.report(terminal.colored("damage: and \(rest) more (--json lists all)", .red))
    }
    if places.count < damage.count {
      let lines = LogLines(terminal: terminal, isJSON: false)
      try terminal.report(lines.unreadable(damage.count - places.count))
    }
    try terminal.report(
      damage.isEmpty
        ? terminal.colored("good", .green)
        : terminal.colored(
          damage[0].offset.map { "damaged, first at \(damage[0].file ?? ""), offset \($0)" }
            ?? "damaged", .red))
    if let advice { try terminal.report(advice) }
  }

  /// What to do if nothing but parity is damaged; nil if other files are.
  private var advice: String? {
    let mending = mendings.filter { $0.isDamage }
    let isOfParity = damage.allSatisfy { one in
      mending.contains { $0.parityPath == one.file && $0.state == .damaged }
    }
    guard let first = damage.first?.file, isOfParity else { return nil }
    return
      "only parity is damaged, and all data is good: remove what is named above, as \(first.printable)"
      + (isArchive
        ? "; the next extension of the archive writes them anew" : "; a new backup has them again")
  }
}
