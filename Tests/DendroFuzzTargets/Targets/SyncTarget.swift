import DendroProtocol
import DendroTree

extension FuzzTarget {
  /// Messages of a server to a client that has listened, written, read and begun a transaction, each ended by a byte 0. An empty
  /// one stands for a loss of the connection.
  static let sync = FuzzTarget(
    "sync", "what servers send to clients that keep in step", byteLimit: 2048, weight: 40,
    seeds: {
      func answer(_ number: Int, _ status: String = "ok", _ data: String = "\"\"") -> String {
        "{\"t\":\"d\",\"d\":{\"r\":\(number),\"b\":{\"s\":\"\(status)\",\"d\":\(data)}}}"
      }
      func push(_ action: String, _ body: String) -> String {
        "{\"t\":\"d\",\"d\":{\"a\":\"\(action)\",\"b\":\(body)}}"
      }
      let hello =
        "{\"t\":\"c\",\"d\":{\"t\":\"h\",\"d\":{\"ts\":5,\"v\":\"5\",\"h\":\"h\",\"s\":\"s\"}}}"
      let own = hello.replacing(
        "\"s\":", with: "\"dendro\":{\"branch\":\"b\",\"lsn\":3,\"since\":0},\"s\":")
      let all = (1...8).map { answer($0) }
      return [
        [hello] + all,
        [hello, push("d", "{\"p\":\"a\",\"d\":{\"x\":1,\"y\":{\".value\":2,\".priority\":3}}}")]
          + all,
        [
          hello, push("m", "{\"p\":\"a\",\"d\":{\"x/y\":null,\"z/.priority\":4}}"),
          answer(4, "datastale"),
        ],
        [
          hello, push("d", "{\"p\":\"a\",\"d\":{\"k\":1,\"l\":2},\"t\":1}"),
          push("c", "{\"p\":\"a\"}"),
        ],
        [
          hello, answer(2, "permission_denied", "\"Permission denied\""),
          push("ac", "{\"s\":\"expired_token\"}"),
        ],
        [
          hello, push("d", "{\"p\":\"a\",\"d\":{\"x\":1,\"y\":{\"z\":2},\"z\":3}}"),
          push(
            "rm",
            "{\"p\":\"a\",\"d\":[{\"e\":\"x\",\"m\":null},{\"s\":\"x\",\"e\":\"y/z\",\"m\":{\"y\":{\"w\":5}}},{\"s\":\"y/z\",\"m\":7}]}"
          ),
        ],
        [own] + (1...8).map { answer($0, "ok", "{\"lsn\":4}") } + ["", own]
          + [
            push("m", "{\"p\":\"a\",\"d\":{\"x\":1},\"h\":\"LkoDN24bwRWG2p4jGZoe8M/Acf8=\"}"),
            answer(12), push("m", "{\"p\":\"a\",\"d\":{\"x\":2},\"h\":\"\"}"), answer(13),
          ],
        [hello, "{\"t\":\"c\",\"d\":{\"t\":\"r\",\"d\":\"h:1\"}}", push("sd", "{\"msg\":\"m\"}")],
      ].map { Array($0.joined(separator: "\0").utf8) }
    },
    body: { bytes in
      var client = try SyncedClient()
      for message in [UInt8](bytes).split(separator: 0, omittingEmptySubsequences: false).prefix(64)
      {
        if message.isEmpty { try client.lose() } else { try client.receive(Array(message)) }
      }
      try client.lose()
    })
}

/// A client with something of everything under way.
private struct SyncedClient {
  private var dialogue = SyncDialogue(software: "fuzz")
  private var shown: [QueryTarget: Node] = [:]

  init() throws {
    let path = try Path(parsing: "a")
    var window = QueryParameters()
    window.order = .value
    window.limit = .last(2)
    for target in [
      QueryTarget(path), QueryTarget(path, window), QueryTarget(try Path(parsing: "a/x")),
    ] {
      let effects = dialogue.begin(target, for: .listener(1))
      shown[target] = dialogue.tree.visible(target)?.node ?? .empty
      try take(effects)
    }
    dialogue.opened()
    for draft in [
      Draft(.set(try Path(parsing: "a/x/y"), Node(.integer(1)))),
      Draft(.increment(try Path(parsing: "a/n"), .integer(1))), Draft(.remove(path)),
    ] {
      try take(dialogue.write(SyncWrite(draft, time: 1, over: dialogue.tree)).effects)
    }
    try take(dialogue.transact(at: path, isVisible: true).effects)
    try take(dialogue.read(QueryTarget(try Path(parsing: "b"))).effects)
    try take(dialogue.registerOnDisconnect(Draft(.remove(path))).effects)
  }

  mutating func receive(_ message: [UInt8]) throws { try take(dialogue.receive(message)) }

  mutating func lose() throws {
    try take(dialogue.askLSN())
    try take(dialogue.lost())
    dialogue.opened()
  }

  private mutating func take(_ effects: [SyncDialogue.Effect]) throws {
    for effect in effects {
      switch effect {
      case .changed(let step):
        // The target of a transaction is shown, too.
        if let before = shown[step.target] {
          guard before.isIdentical(to: step.before.node) else {
            throw FuzzFinding("a step does not go on where the one before has ended")
          }
          shown[step.target] = step.after.node
        }
        do {
          try step.after.node.checkInvariants()
        } catch {
          throw FuzzFinding("\(error)")
        }
      case .ended(let target, _): shown[target] = nil
      case .run(let transaction, let input):
        var node = input
        node.graft(Node(.integer(7)), at: try Path(parsing: "t"))
        try take(
          dialogue.decided(
            transaction, .write(Draft(.set(try Path(parsing: "a"), node)), time: 1)))
      default: break
      }
    }
  }
}
