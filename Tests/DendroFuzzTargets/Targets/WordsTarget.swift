import DendroCommandLine
import DendroTree
import DendroTestSupport

extension FuzzTarget {
  /// Lines: the words of a command line. Nothing is run.
  static let words = FuzzTarget(
    "words", "the words of dendro's command line", byteLimit: 1024, weight: 20,
    seeds: {
      [
        "get\ndb\n/a\n--order-by\nkey\n--start-at=a",
        "set\ndb\n/a/.priority\n1\n--durability\ninterval:5",
        "log\ndb\n--from\n12\n--json", "get\ndb\n--at\n2026-11-21T04:00:00Z", "verify\ndb\n--",
        "help",
        "watch\ndb\n-h", "get\ndb\n-e\n-c\n--limit-to-first\n4294967296", "get\ndb\n-1",
        "get\ndb\n--at\n2024-02-30", "purge\ndb\n--history\nwrites:18446744073709551616",
      ].map { Array($0.utf8) }
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      _ = attempt { try CommandLineTool.parse(input.lines()) }
    })

  /// Lines: the options of a query, which is then answered twice.
  static let query = FuzzTarget(
    "query", "the options of a query, and its answer against the model", byteLimit: 1024,
    weight: 10,
    seeds: {
      [
        "--order-by\nkey\n--start-at\na\n--end-at\nz", "--order-by\nchild:a/b\n--limit-to-last\n2",
        "--order-by\nvalue\n--equal-to\n1.0", "--order-by\npriority\n--start-after\n\"p\"",
        "--limit-to-first\n3\n--start-at\ntrue", "--order-by=value\n--end-before\n-3e2",
        "--order-by=key\n--equal-to=-0", "--order-by\nchild:$key", "--end-at\nnull",
      ].map { Array($0.utf8) }
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      guard let parameters = attempt({ try CommandLineTool.parse(["get", "db"] + input.lines()) })
      else { return }
      guard let parameters else { return }
      let node = QueriedNode.node
      let filtered = node.filtered(by: parameters)
      try WriteComparison.checkInvariants(filtered, "the answer")
      if parameters.showsAll {
        return try require(filtered == node, "a query for all gives something else")
      }
      let expected = ModelQuery.children(of: node, parameters)
      let ordered = filtered.children(in: parameters.order).map { ($0.key.string, $0.node) }
      try require(
        ordered.count == expected.count
          && zip(ordered, expected).allSatisfy { $0.0 == $1.key && $0.1 == $1.node },
        "the query gives \(ordered.map(\.0)), the model \(expected.map(\.key))")
    })
}

/// What the queries are put to: every kind of value, at keys of every kind.
private enum QueriedNode {
  static let node: Node = {
    var generator = WriteGenerator(seed: 11)
    var builder = NodeBuilder()
    for _ in 0..<40 { builder.append(generator.key(), generator.node(height: 2)) }
    for index in 0..<24 {
      guard let key = try? Key("n\(index * 7 % 24)") else { continue }
      builder.append(key, Node(generator.scalar(), priority: generator.priority()))
    }
    return builder.finish()
  }()
}
