import DendroProtocol
import DendroTree

extension FuzzTarget {
  /// What a directory keeps about a client and its server, as JSON: the records, and behind a byte 0 the data. A string that
  /// begins with `0x` stands for bytes.
  static let records = FuzzTarget(
    "records", "what a directory keeps of a client and its server", byteLimit: 2048, weight: 20,
    seeds: {
      let path = "a"
      var writes: [String] = []
      for draft in [
        try? Draft(.set(Path(parsing: path), Node(.integer(1)))),
        try? Draft(.increment(Path(parsing: path), .integer(1))),
        try? Draft(.remove(Path(parsing: path))),
      ] {
        guard let draft, case .bytes(let bytes)? = Node(keeping: EncodedWrite(draft)).scalar else {
          continue
        }
        writes.append("0x" + hexadecimal(bytes))
      }
      return writes.map { write in
        let records = """
          {"server":"http://h:1","user":"user ann","client":"c","known":{"branch":"b","lsn":5,"time":6},\
          "pending":{"1":{"write":"\(write)","user":"user ann","time":7,"incarnation":"i","sent":true},\
          "2":{"write":"\(write)","estimate":"\(write)","user":"anonymous","time":8,"held":true}},\
          "targets":{"1":{"path":"/a","use":1},\
          "2":{"path":"/b","query":"{\\"l\\":2,\\"vf\\":\\"r\\",\\"i\\":\\".value\\"}","use":2,"keys":{"k":true}}}}
          """
        return Array((records + "\0{\"a\":{\"x\":1},\"b\":{\"k\":2}}").utf8)
      }
    },
    body: { bytes in
      let parts = [UInt8](bytes).split(
        separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
      let nodes = parts.map { part in
        part.withUnsafeBytes { try? JSONParser.parse($0) } ?? .empty
      }
      let records = withBytes(nodes[0])
      try require(
        records.isEmpty || (try? records.checkInvariants()) != nil, "the records are no tree")
      var targets: [QueryTarget: SyncCache.Target] = [:]
      for (_, item) in records.child(SyncRecords.targets).children {
        if let (target, value) = SyncRecords.target(item) { targets[target] = value }
      }
      var dialogue = SyncDialogue(software: "fuzz")
      dialogue.cache = SyncCache(nodes.count > 1 ? nodes[1] : .empty, targets)
      dialogue.knownServer = SyncRecords.knownServer(in: records)
      dialogue.numbering = WriteNumbering(
        client: String(repeating: "0", count: 32), incarnation: String(repeating: "1", count: 16))
      var last = 0
      for (number, write) in SyncRecords.writes(in: records) {
        try require(number > last, "numbers that do not ascend")
        last = number
        dialogue.restore(write, number: number)
        // What is read is kept as it is.
        let again = SyncRecords.node(write)
        try require(!again.isEmpty, "a write without a record")
      }
      dialogue.resumeRestored()
      for target in targets.keys { _ = dialogue.begin(target, for: .listener(1)) }
      if let user = SyncRecords.lastUser(in: records) { _ = dialogue.change(user: user) }
      dialogue.opened()
      for message in [
        #"{"t":"c","d":{"t":"h","d":{"ts":5,"v":"5","h":"h","s":"s","dendro":{"branch":"b","lsn":6,"since":0}}}}"#,
        #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}"#,
        #"{"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#,
        #"{"t":"d","d":{"r":3,"b":{"s":"permission_denied","d":""}}}"#,
      ] {
        _ = dialogue.receive(Array(message.utf8))
      }
      for (number, _) in dialogue.pendingWrites { _ = dialogue.release(write: number) }
      _ = dialogue.lost()
      _ = dialogue.purge()
      for target in targets.keys { _ = dialogue.tree.node(at: target.path) }
    })

  private static func withBytes(_ node: Node) -> Node {
    if case .string(let text)? = node.scalar, text.hasPrefix("0x") {
      let digits = Array(text.utf8.dropFirst(2))
      let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap { index in
        UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16)
      }
      return Node(.bytes(bytes))
    }
    guard node.isBranch else { return node }
    var changed = Node.empty
    for (key, child) in node.children {
      changed.graft(withBytes(child), at: Path.root.appending(key))
    }
    return changed
  }
}
