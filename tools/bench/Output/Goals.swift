extension Goal {
  /// The goals, in the order of the table.
  static let all: [Goal] =
    sets + durable + fanOut + counters + opening + reads + singleReads + top + space + listeners
    + growth + typed + synced

  private static func entrants(
    _ workload: String, _ comparison: String, _ contestants: [String]
  ) -> [Entrant] {
    contestants.map { Entrant(workload, comparison, $0) }
  }

  /// A ratio of rates within one comparison.
  private static func rate(
    _ row: String, _ title: String, _ workload: String, _ comparison: String,
    _ contestants: [String], atLeast bound: Double, times name: String, _ other: String
  ) -> Goal {
    Goal(
      row: row, title: title, bound: .atLeast(bound), unit: "times \(name)",
      reached: .ratio(
        .rate, of: entrants(workload, comparison, contestants),
        to: Entrant(workload, comparison, other)))
  }

  // MARK: W1

  private static let sets: [Goal] = {
    let plain = "dendro, child(path).setValue(String)"
    let ways = [
      plain, "dendro, references made before", "dendro, child(path).setValue(Database.Value)",
    ]
    func goal(
      _ title: String, _ ways: [String], _ bound: Double, _ name: String, _ other: String
    ) -> Goal {
      rate("W1", title, "sets", "each alone", ways, atLeast: bound, times: name, other)
    }
    let update = entrants(
      "sets", "in updates of 1,000",
      ["dendro, update { $0.set(path, String) }", "dendro, updateChildValues"])
    return [
      goal("small sets by child(path).setValue(String)", [plain], 1.3, "LevelDB", "leveldb"),
      goal("small sets, best way", ways, 2, "LevelDB", "leveldb"),
      goal(
        "small sets, best way", ways, 5, "Redis, pipelined", "redis, 1,000 commands in flight"),
      goal("small sets, best way", ways, 20, "SQLite", "sqlite"),
      Goal(
        row: "W1", title: "CPU time of a small set, best way", bound: .atMost(1), unit: "µs",
        reached: .value(.processorTime, of: entrants("sets", "each alone", ways))),
      Goal(
        row: "W1", title: "CPU time of a leaf in updateChildValues of 1,000", bound: .atMost(1.5),
        unit: "µs",
        reached: .value(
          .processorTime,
          of: entrants("sets", "in updates of 1,000", ["dendro, updateChildValues"]))),
      Goal(
        row: "W1", title: "leaves in updates of 1,000", bound: .atLeast(1.5),
        unit: "times single sets",
        reached: .ratio(.rate, of: update, to: Entrant("sets", "each alone", plain))),
      Goal(
        row: "W1", title: "log of updates of 1,000", bound: .atMost(27), unit: "bytes a leaf",
        reached: .value(.extra("log"), of: update)),
      goal(
        "setValue(Database.Value)", ["dendro, child(path).setValue(Database.Value)"], 1,
        "setValue(Any?)", "dendro, child(path).setValue(Any?)"),
      goal(
        "setValue(from:)", ["dendro, child(path).setValue(from:)"], 1, "setValue(Any?)",
        "dendro, child(path).setValue(Any?)"),
    ]
  }()

  // MARK: W2

  private static let durable: [Goal] = {
    let blocking = [
      "dendro, setValue and synchronize(), everyCommit",
      "dendro, setValue and synchronize(), onRequest",
    ]
    let awaiting = ["dendro, await setValue"]
    func goal(
      _ title: String, _ comparison: String, _ ways: [String], _ bound: Double, _ name: String,
      _ other: String
    ) -> Goal {
      rate("W2", title, "durable", comparison, ways, atLeast: bound, times: name, other)
    }
    return [
      goal("durable, 1 caller that blocks", "1 caller", blocking, 1.15, "LevelDB", "leveldb"),
      goal(
        "durable, 1 caller that blocks", "1 caller", blocking, 0.9, "pwrite and fdatasync",
        "pwrite and fdatasync"),
      goal("durable, 1 caller that awaits", "1 caller", awaiting, 0.95, "LevelDB", "leveldb"),
      goal("durable, 8 callers", "8 callers", blocking + awaiting, 1.4, "LevelDB", "leveldb"),
      goal("durable, 64 threads that block", "64 callers", blocking, 1.5, "LevelDB", "leveldb"),
      Goal(
        row: "W2", title: "durable, 64 threads that block, p99", bound: .atMost(1_000), unit: "µs",
        reached: .value(.extra("p99"), of: entrants("durable", "64 callers", blocking))),
      goal("durable, 64 tasks", "64 callers", awaiting, 2, "LevelDB", "leveldb"),
      goal(
        "durable, 64 in flight from one thread", "64 sets in flight",
        ["dendro, completion blocks"], 2.5, "Redis, pipelined", "redis, one connection"),
    ]
      + [
        "dendro, setValue and synchronize() by threads", "dendro, await setValue by tasks",
        "dendro, completion blocks",
      ].map { way in
        Goal(
          row: "W2", title: "64 in flight, 1 ms added to each flush", bound: .atLeast(45),
          unit: "sets a flush",
          reached: .value(
            .extra("group"),
            of: entrants("durable", "64 in flight, 1 ms added to each flush", [way])))
      }
  }()

  // MARK: W3 and W4

  private static let fanOut: [Goal] = {
    let ways = [
      "dendro, updateChildValues", "dendro, updateChildValues, dictionaries made before",
      "dendro, updateChildValues, Database.Value made before",
      "dendro, update { $0.set(path, String) }",
    ]
    func goal(
      _ title: String, _ ways: [String], _ bound: Double, _ name: String, _ other: String
    ) -> Goal {
      rate("W3", title, "fan-out", "commits", ways, atLeast: bound, times: name, other)
    }
    return [
      goal("fan-out by dictionaries", [ways[0]], 0.9, "LevelDB", "leveldb, get and batch"),
      goal("fan-out, best way", ways, 1.5, "LevelDB", "leveldb, get and batch"),
      goal("fan-out, best way", ways, 4, "Redis", "redis, one transaction at a time"),
      goal(
        "fan-out, best way", ways, 4, "Redis, pipelined", "redis, 100 transactions in flight"),
    ]
  }()

  private static let counters: [Goal] = {
    let ways = [
      "dendro, child(path).increment(by:)", "dendro, increment(by:), references made before",
    ]
    return [
      ("LevelDB", "leveldb, get and put"), ("Redis, pipelined", "redis, 1,000 commands in flight"),
    ]
    .map { name, other in
      rate(
        "W4", "increments of hot counters", "counters", "increments", ways, atLeast: 4,
        times: name, other)
    } + [
      Goal(
        row: "W4", title: "CPU time of setValue(ServerValue.increment(1))", bound: .atMost(1.8),
        unit: "µs",
        reached: .value(
          .processorTime,
          of: entrants(
            "counters", "increments", ["dendro, child(path).setValue(ServerValue.increment(1))"])))
    ]
  }()

  // MARK: W5

  private static let opening: [Goal] = [
    rate(
      "W5", "log, written singly, to reuse_logs", "reopen", "log, written singly", ["dendro"],
      atLeast: 1.8, times: "LevelDB", "leveldb, reuse_logs"),
    rate(
      "W5", "log, written in updates of 1,000, to reuse_logs", "reopen",
      "log, written in updates of 1,000", ["dendro"], atLeast: 1.8, times: "LevelDB",
      "leveldb, reuse_logs"),
    rate(
      "W5", "checkpoint opened and walked whole", "checkpoint", "opened, all loaded",
      ["dendro, open and read every leaf"], atLeast: 1, times: "LevelDB",
      "leveldb, open and scan"),
    rate(
      "W5", "opening from the log, written singly", "reopen", "log, written singly", ["dendro"],
      atLeast: 2, times: "LevelDB", "leveldb"),
    rate(
      "W5", "opening from the log, written in updates of 1,000", "reopen",
      "log, written in updates of 1,000", ["dendro"], atLeast: 2, times: "LevelDB", "leveldb"),
    rate(
      "W5", "opening from a checkpoint, all loaded", "checkpoint", "opened, all loaded",
      ["dendro, open with loading .whole"], atLeast: 7, times: "Redis",
      "redis, snapshot loaded"),
    Goal(
      row: "W5", title: "first read after opening a checkpoint", bound: .atMost(5), unit: "ms",
      reached: .value(
        .extra("time"), of: entrants("checkpoint", "opened, first leaf read", ["dendro"]))),
    Goal(
      row: "W5", title: "opening 1 million leaves after a kill", bound: .atMost(0.5), unit: "s",
      reached: .value(
        .extra("time"), of: entrants("reopen", "after a kill, 1 million leaves", ["dendro"]))),
  ]

  // MARK: W6 and W7

  private static let reads: [Goal] =
    [
      rate(
        "W6", "random leaf", "reads", "leaf",
        [
          "dendro, a view for each", "dendro, all in one view", "dendro, in one snapshot",
          "dendro, getData for each",
        ], atLeast: 1.3, times: "LMDB", "lmdb, one transaction kept"),
      rate(
        "W6", "object of six fields", "reads", "object of six fields",
        [
          "dendro, a view for each", "dendro, all in one view",
          "dendro, all in one view, each child",
          "dendro, getData and its children", "dendro, getData(as:)",
        ], atLeast: 1.3, times: "LMDB", "lmdb, a cursor over six keys, one transaction kept"),
      rate(
        "W6", "two readers beside a writer", "reads", "leaf, beside a writer",
        ["dendro, a view for each, 2 readers"], atLeast: 1.8, times: "one reader",
        "dendro, a view for each, 1 reader"),
    ] + besideWriter

  /// How little a reader and a writer of one database lose by each other.
  private static let besideWriter: [Goal] = {
    let comparison = ReadsBesideWriter.comparison.name
    return [("getData for each", 0.5), ("a view for each", 0.7)].flatMap { way, bound in
      let same = entrants("reads", comparison, [ReadsBesideWriter.name(way, writingTo: .same)])
      func goal(_ title: String, _ bound: Double, _ unit: String, _ extra: String, _ other: String)
        -> Goal
      {
        Goal(
          row: "W6", title: title, bound: .atLeast(bound), unit: unit,
          reached: .ratio(.extra(extra), of: same, to: Entrant("reads", comparison, other)))
      }
      return [
        goal(
          "\(way), beside a writer at full speed", bound, "times beside one of another database",
          "undisturbed reads", ReadsBesideWriter.name(way, writingTo: .another)),
        goal(
          "the writer, beside \(way)", 0.6, "times alone", "undisturbed sets",
          ReadsBesideWriter.writerAloneName),
      ]
    }
  }()

  /// Of one way each, not of the best one.
  private static let singleReads: [Goal] = [
    rate(
      "W6", "random leaf, getData awaited", "reads", "leaf", ["dendro, getData for each"],
      atLeast: 0.9, times: "LMDB", "lmdb, one transaction kept"),
    rate(
      "W6", "random leaf, a view for each", "reads", "leaf", ["dendro, a view for each"],
      atLeast: 1.2, times: "LMDB", "lmdb, one transaction kept"),
    rate(
      "W6", "object of six fields, a view for each", "reads", "object of six fields",
      ["dendro, a view for each"], atLeast: 1.2, times: "LMDB",
      "lmdb, a cursor over six keys, one transaction kept"),
  ]

  private static let top: [Goal] = [
    rate(
      "W7", "top 100 of 100,000, asked for", "top", "asked for", ["dendro, getData"], atLeast: 2,
      times: "LMDB", "lmdb, index made by hand"),
    rate(
      "W7", "top 100, asked for, all fields read", "top", "asked for, all fields",
      ["dendro, getData"], atLeast: 1.2, times: "LMDB", "lmdb, index made by hand"),
    rate(
      "W7", "top 100 of 100,000, kept by a listener", "top", "kept by a listener",
      ["dendro, listener"], atLeast: 4, times: "LMDB", "lmdb, index made by hand"),
    rate(
      "W7", "top 100, kept, all fields read", "top", "kept by a listener, all fields",
      ["dendro, listener"], atLeast: 1.2, times: "LMDB", "lmdb, index made by hand"),
  ]

  // MARK: W8

  private static let space: [Goal] = {
    func goal(
      _ title: String, _ comparison: String, _ extra: String, _ bound: Double, _ unit: String
    ) -> Goal {
      Goal(
        row: "W8", title: title, bound: .atMost(bound), unit: unit,
        reached: .value(.extra(extra), of: entrants("space", comparison, ["dendro"])))
    }
    let leaves = "400,000 leaves"
    return [
      goal("log of a single commit", "single commits", "log", 48, "bytes a set"),
      goal(
        "log of a single commit, random fields", "single commits, random fields", "log", 63.6,
        "bytes a set"),
      goal("log of a group", leaves, "log", 27, "bytes a leaf"),
      goal("checkpoint", leaves, "checkpoint", 26, "bytes a leaf"),
      goal("memory", leaves, "memory", 73, "bytes a leaf"),
    ]
  }()

  // MARK: W9

  private static let listeners: [Goal] = {
    let way = "dendro, observe(.value)"
    return [
      rate(
        "W9", "deliveries to 1 listener", "listeners", "1 listener, 32 writes ahead", [way],
        atLeast: 4, times: "Redis", "redis, 1 subscriber"),
      Goal(
        row: "W9", title: "p50 of a delivery to 1 listener", bound: .atMost(0.4),
        unit: "times Redis",
        reached: .ratio(
          .extra("p50"), of: entrants("listeners", "1 listener, one write at a time", [way]),
          to: Entrant("listeners", "1 listener, one write at a time", "redis, 1 subscriber"))),
      rate(
        "W9", "deliveries to 1,000 listeners", "listeners", "1,000 listeners, 32 writes ahead",
        [way], atLeast: 8, times: "Redis", "redis, 1,000 subscribers"),
      rate(
        "W9", "sets, 100,000 listeners elsewhere", "listeners", "sets in a list",
        ["dendro, 100,000 listeners elsewhere"], atLeast: 0.95, times: "no listener",
        "dendro, no listener"),
    ]
  }()

  // MARK: Growth

  private static let growth: [Goal] = [
    rate(
      "growth", "sets 32 levels deep", "growth", "sets by depth", ["dendro, 32 levels"],
      atLeast: 0.5, times: "3 levels", "dendro, 3 levels"),
    rate(
      "growth", "gets 32 levels deep", "growth", "gets by depth", ["dendro, 32 levels"],
      atLeast: 0.5, times: "3 levels", "dendro, 3 levels"),
    // The logarithm of 1 million is one and a half times that of 10,000.
    rate(
      "growth", "last 100 by key of 1,000,000", "growth", "last 100 by key",
      ["dendro, of 1,000,000 children"], atLeast: 0.66, times: "10,000",
      "dendro, of 10,000 children"),
    Goal(
      row: "growth", title: "first read after opening 5 million leaves", bound: .atMost(5),
      unit: "ms",
      reached: .value(
        .extra("time"),
        of: entrants("sizes", "first leaf after opening", ["dendro, of 5,000,000 leaves"]))),
    rate(
      "growth", "sets beside a checkpoint", "checkpoint",
      "sets beside checkpoints of 1 million leaves", ["dendro, beside checkpoints"], atLeast: 0.8,
      times: "none beside", "dendro, no checkpoint"),
    Goal(
      row: "growth", title: "longest set beside a checkpoint", bound: .atMost(5), unit: "ms",
      reached: .value(
        .extra("longest set"),
        of: entrants(
          "checkpoint", "sets beside checkpoints of 1 million leaves",
          ["dendro, beside checkpoints"]))),
  ]

  // MARK: W10

  private static let typed: [Goal] = {
    func goal(
      _ title: String, _ comparison: String, _ way: String, _ bound: Double, _ name: String,
      _ other: String
    ) -> Goal {
      Goal(
        row: "W10", title: "CPU time of \(title)", bound: .atMost(bound), unit: "times \(name)",
        reached: .ratio(
          .processorTime, of: entrants("typed", comparison, [way]),
          to: Entrant("typed", comparison, other)))
    }
    return [
      goal(
        "children(as:)", "lists of 100 decoded", "dendro, children(as:)", 1.5, "JSONDecoder",
        "foundation, JSONDecoder of a dictionary"),
      goal(
        "setValue(from:)", "posts set", "dendro, setValue(from:)", 1.5, "its dictionary",
        "dendro, setValue([String: Any])"),
      goal(
        "runTransaction(as:)", "transactions", "dendro, runTransaction(as:)", 1.3,
        "one with the dictionary", "dendro, transaction with the dictionary"),
    ]
  }()

  // MARK: Synced databases

  private static let synced: [Goal] = [
    Goal(
      row: "synced", title: "CPU time of an answer with 100,000 pending", bound: .atMost(1.25),
      unit: "times 10 pending",
      reached: .ratio(
        .processorTime, of: entrants("synced", "an answer", ["dendro, 100000 pending"]),
        to: Entrant("synced", "an answer", "dendro, 10 pending"))),
    Goal(
      row: "synced", title: "a window of 50 after opening 1 million cached leaves",
      bound: .atMost(5), unit: "ms",
      reached: .value(
        .extra("window of 50"),
        of: entrants(
          "synced", "opening, 1 million leaves cached", ["dendro, synced in a directory"]))),
  ]
}
