import DendroTree

extension FuzzTarget {
  /// One byte that says how the stream is cut, then a text.
  static let json = FuzzTarget(
    "json", "JSON, from memory and as a stream, and the way back into text", weight: 240,
    seeds: {
      [
        "null", "true", "-0", "1e400", "[1,2,[3,{}],null,\"x\"]", "{\"a\":{\"b\":1.5,\"c\":[]}}",
        "{\".value\":1,\".priority\":\"p\"}",
        "{\"a\":1,\".priority\":2.25,\"a\":{\"\u{e9}\":\"\u{1F332}\"}}",
        "{\"\\u0061\\ud83c\\udf32\":\"\\n\\\"\\u0000\"}",
        "[9007199254740993,9223372036854775807,1E-7]",
        "{\"0\":1,\"1\":2,\"-0\":3,\"00\":4}", "{\"a/b\":1}", "{\".sv\":\"timestamp\"}",
        String(repeating: "[", count: 40), String(repeating: "{\"a\":", count: 33) + "1",
        "123456789012345678901234567890.5e-20", " {\n \"a\" : 1 ,\n \"b\" : [ ] } ",
      ].map { [3] + Array($0.utf8) } + [[1, 0xEF, 0xBB, 0xBF, 0x31], [0, 0x22, 0xFF, 0x22]]
    },
    body: { bytes in
      let cut = bytes.first ?? 0
      let text = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
      let parsed = result { () throws(JSONError) in try JSONParser.parse(text) }
      try JSONStream.compare(text, parsed, cut: cut)
      guard case .success(let node) = parsed else { return }
      try WriteComparison.checkInvariants(node, "the node")
      try require(node.height() <= Limits.depth, "the node is \(node.height()) levels high")
      for isPretty in [false, true] {
        let written = JSONWriter.string(node, style: JSONStyle(.export, isPretty: isPretty))
        let again = result { () throws(JSONError) in try JSONParser.parse(written) }
        try require(
          try again.get() == node, "written and parsed it is another node: \(written.prefix(200))")
      }
      // Without priorities: no other difference, and the text is stable.
      let plain = JSONWriter.string(node)
      let again = result { () throws(JSONError) in try JSONParser.parse(plain) }
      try require(
        JSONWriter.string(try again.get()) == plain, "the text changes: \(plain.prefix(200))")
    })

  /// A text, taken for the object of an update.
  static let update = FuzzTarget(
    "update", "the JSON object of an update, and the write that it makes", weight: 120,
    seeds: {
      [
        "{\"a/b\":1,\"c\":null}", "{\"a/.priority\":2,\"a\":{\"b\":1}}", "{\".priority\":\"p\"}",
        "{\"a\":1,\"a/b\":2}", "{\"a\":1,\"a\":2,\"b\":[1,2]}", "{}", "[]", "{\"a//b/\":{\"c\":1}}",
        "{\"\":1}", "{\"a.b\":1}",
      ].map { Array($0.utf8) }
    },
    body: { bytes in
      guard
        let entries = attempt({ () throws(JSONError) in try JSONParser.parseEntries(bytes) })
      else { return }
      let write = Write.update(.root, entries)
      guard attempt({ () throws(ValidationError) in try write.validate() }) != nil else { return }
      var tree = Node.empty
      let changes = tree.apply(write)
      try WriteComparison.checkInvariants(tree, "the tree")
      try require(tree.height() <= Limits.depth, "the tree is \(tree.height()) levels high")
      // Undone from what it replaced, newest first, nothing is left.
      for change in changes.reversed() { tree.graft(change.replaced, at: change.path) }
      try require(tree.isEmpty, "undone, something is left")
    })

  static func result<Value, Failure: Error>(_ body: () throws(Failure) -> Value)
    -> Result<Value, Failure>
  {
    Result { () throws(Failure) in try body() }
  }
}

/// The same text in pieces.
enum JSONStream {
  /// The stream ends as the parser in memory does; its pieces make the same node.
  static func compare(
    _ text: UnsafeRawBufferPointer, _ parsed: Result<Node, JSONError>, cut: UInt8
  ) throws {
    var place = 0
    let partMax = 1 + Int(cut & 0x0F)
    let pieceBytes = [1, 16, 64, 1 << 16][Int(cut >> 4) & 3]
    var node = Node.empty
    do {
      try JSONParser.parse(
        pieceBytes: pieceBytes, bufferBytes: 16 << (cut >> 6),
        source: { buffer in
          let part = text.dropFirst(place).prefix(min(partMax, buffer.count))
          buffer.copyBytes(from: part)
          place += part.count
          return part.count
        },
        yield: { piece in
          switch piece.content {
          case .node(let new): _ = node.apply(.set(piece.path, new))
          case .priority(let priority): _ = node.apply(.setPriority(piece.path, priority))
          }
        })
    } catch let error as JSONError {
      guard case .failure(let expected) = parsed else {
        throw FuzzFinding("the stream refuses what memory takes: \(error)")
      }
      return try require(
        expected == error, "memory refuses it as \(expected), the stream as \(error)")
    }
    guard case .success(let expected) = parsed else {
      throw FuzzFinding("the stream takes what memory refuses")
    }
    try require(expected == node, "the pieces make another node")
  }
}
