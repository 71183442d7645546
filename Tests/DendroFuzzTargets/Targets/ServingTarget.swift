import DendroProtocol
import DendroTree

extension FuzzTarget {
  /// A request: method, target, headers and body, each ended by a byte 0.
  static let request = FuzzTarget(
    "request", "REST requests: heads, queries, bodies, credentials", byteLimit: 2048, weight: 60,
    seeds: {
      [
        "GET\0/a/b.json?print=pretty\0\0",
        "GET\0/s.json?orderBy=%22$value%22&limitToLast=2&startAt=5,%22k%22\0accept: text/event-stream\0",
        "PUT\0/a.json?auth=e30.e30.\0if-match: null_etag\0{\"a\":[1,null,{\".sv\":\"timestamp\"}]}",
        "PATCH\0/.json?ns=x\0authorization: Bearer owner\0{\"a/b\":null,\"c\":{\".value\":1,\".priority\":\"p\"}}",
        "POST\0/a.json?x-http-method-override=PATCH&callback=f\0origin: x\0{}",
        "DELETE\0/a/.priority.json\0\0", "GET\0/.ws?v=5&ns=a\0upgrade: websocket\0",
      ].map { Array($0.utf8) }
    },
    body: { bytes in
      let parts = [UInt8](bytes).split(separator: 0, maxSplits: 3, omittingEmptySubsequences: false)
      let texts = parts.prefix(3).map { String(decoding: $0, as: UTF8.self) }
      guard texts.count == 3 else { return }
      var headers = HTTPHeaders()
      for line in texts[2].split(separator: "\n") {
        let field = line.split(separator: ":", maxSplits: 1)
        headers.append(
          String(field.first ?? ""), field.count > 1 ? String(field[1].drop { $0 == " " }) : "")
      }
      let draft = attempt { () throws(RESTError) in
        try Self.requested(by: texts, headers, parts.count > 3 ? Array(parts[3]) : [])
      }
      guard let draft = draft.flatMap({ $0 }),
        attempt({ () throws(ValidationError) in try draft.write.validate() }) != nil
      else { return }
      var root = Node.empty
      _ = root.apply(draft.resolved(time: 1, against: root))
      try Self.invariants(of: root)
    })

  /// Frames of a WebSocket, each ended by a byte 0.
  static let wire = FuzzTarget(
    "wire", "messages of WebSockets: frames, requests, queries", byteLimit: 2048, weight: 60,
    seeds: {
      func message(_ action: String, _ body: String) -> String {
        "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"\(action)\",\"b\":\(body)}}"
      }
      return [
        "0", "2\0{\"t\":\"c\",\0\"d\":{\"t\":\"p\",\"d\":{}}}",
        message(
          "q",
          "{\"p\":\"/a\",\"q\":{\"sp\":3,\"sn\":\"k\",\"sin\":false,\"l\":2,\"vf\":\"r\",\"i\":\"x/y\"},\"t\":1,\"h\":\"\"}"
        ),
        message("q", "{\"p\":\"/a\",\"h\":\"\",\"since\":4}"), message("lsn", "{}"),
        message("p", "{\"p\":\"/a/.priority\",\"d\":1,\"h\":\"\"}"),
        message("m", "{\"p\":\"/\",\"d\":{\"a/b\":{\".sv\":{\"increment\":1}}}}"),
        message("om", "{\"p\":\"/a\",\"d\":{\"b\":null}}"),
        message("oc", "{\"p\":\"/a\",\"d\":null}"),
        message("gauth", "{\"cred\":\"owner\",\"authvar\":{\"uid\":\"u\"},\"noauth\":false}"),
      ].map { Array($0.utf8) }
    },
    body: { bytes in
      var assembler = MessageAssembler(byteLimit: 1024)
      for frame in [UInt8](bytes).split(separator: 0, omittingEmptySubsequences: false) {
        guard case .message(let message) = assembler.add(Array(frame)) else { continue }
        try require(message.count <= 1024, "a message is over the limit")
        let joined = MessageFrames.split(message)
        try require(
          Array((joined.count == 1 ? joined[...] : joined.dropFirst()).joined()) == message,
          "split and joined, the message is another one")
        guard case .request(let request) = WireMessage(message),
          case .success(let action) = request.action
        else { continue }
        switch action {
        case .write(let draft, _, _), .onDisconnect(let draft, _):
          var root = Node.empty
          _ = root.apply(draft.resolved(time: 1, against: root))
          try Self.invariants(of: root)
        case .get(let location), .listen(let location, _, _):
          if let query = location.query { _ = Node.empty.filtered(by: query) }
        default: break
        }
      }
    })

  /// A token.
  static let token = FuzzTarget(
    "token", "ID tokens", byteLimit: 1024, weight: 20,
    seeds: {
      [
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo1LCJpYXQiOjF9.", "e30.e30.", "..",
        "eyJhbGciOiJIUzI1NiIsImtpZCI6ImsifQ.eyJzdWIiOiJhIiwiYXVkIjpbImEiLCJiIl0sImV4cCI6NWU5fQ.AAAA",
      ].map { Array($0.utf8) }
    },
    body: { bytes in
      guard let token = IDToken(String(decoding: bytes, as: UTF8.self)) else { return }
      guard
        let found = attempt({ () throws(RESTError) in
          try ClaimRules(audience: "a").authentication(by: token, now: 100)
        })
      else { return }
      try require(found.expiry ?? 0 > 100, "an expired token is taken")
      try require(token.audience.contains("a"), "the token is for another service")
    })

  /// What a request writes; nil if it writes nothing.
  private static func requested(
    by head: [String], _ headers: HTTPHeaders, _ body: [UInt8]
  ) throws(RESTError) -> Draft? {
    _ = try Handshake(method: head[0], target: head[1], headers: headers)
    let request = try RESTRequest(method: head[0], target: head[1], headers: headers)
    _ = try CredentialPolicy.trusting.identity(of: request.credentials)
    guard request.method.isWrite, let path = request.resource.path else {
      _ = RESTAnswer(reading: Node(.bool(true)), request)
      return nil
    }
    return try body.withUnsafeBytes { bytes in
      Result { () throws(RESTError) in try RESTBody.draft(request, bytes, at: path) }
    }.get()
  }

  private static func invariants(of root: Node) throws {
    do {
      try root.checkInvariants()
    } catch {
      throw FuzzFinding("\(error)")
    }
  }
}
