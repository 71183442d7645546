package import DendroTree

/// What goes back to the client.
package struct RESTAnswer: Sendable {
  package var status: Int
  package var headers: HTTPHeaders
  package var body: AnswerText

  init(_ status: Int, _ request: RESTRequest?, _ body: AnswerText) {
    self.status = status
    self.body = body
    headers = HTTPHeaders()
    headers.append("Content-Type", "application/json; charset=utf-8")
    headers.append("Cache-Control", "no-cache")
    appendOrigin(request?.origin)
  }

  /// A page of the server's own, for itself alone: no other page of a browser gets it.
  package init(page body: AnswerText, type: String) {
    status = 200
    self.body = body
    headers = HTTPHeaders([("Content-Type", type), ("Cache-Control", "no-cache")])
  }

  package init(page bytes: [UInt8], type: String) {
    var text = AnswerText()
    text.append(bytes: bytes)
    self.init(page: text, type: type)
  }

  /// A script for pages of any origin, as WebSockets are for.
  package init(script: AnswerText) {
    self.init(page: script, type: "text/javascript; charset=utf-8")
    headers.append("Access-Control-Allow-Origin", "*")
  }

  private mutating func appendOrigin(_ origin: RESTRequest.Origin?) {
    // A page that sends a credential in a header gets its own name back, as browsers want it.
    let name = origin.flatMap { $0.hasCredentials ? $0.name : nil }
    headers.append("Access-Control-Allow-Origin", name ?? "*")
    if name != nil { headers.append("Vary", "Origin") }
    headers.append("Access-Control-Expose-Headers", "ETag")
  }

  // MARK: Refusals

  /// A refusal that no page of another origin can read.
  package init(refusal error: RESTError) {
    self.init(error)
    headers = HTTPHeaders(
      headers.fields.filter { !$0.name.lowercased().hasPrefix("access-control-") }
        .map { ($0.name, $0.value) })
  }

  /// A refusal of the request, which is nil if its head could not be read.
  package init(_ error: RESTError, to request: RESTRequest? = nil) {
    var text = AnswerText("{\n  \"error\" : ")
    text.append(Node(.string(error.text)), JSONStyle())
    text.append("\n}\n")
    self.init(error.status, request, text)
  }

  /// The refusal of a write whose condition the current value does not meet.
  ///
  /// - Parameters:
  ///   - current: nil if it is too large to be shown.
  ///   - etag: of the current value.
  package init(preconditionFailed request: RESTRequest, current: Node?, etag: String) {
    if let current {
      self.init(412, request, AnswerText(current, request.style))
    } else {
      self.init(RESTError(412, RESTError.readTooLarge.text), to: request)
    }
    headers.append("ETag", etag)
  }

  // MARK: Success

  /// The answer to a reading of a location where `node` is.
  ///
  /// - Parameter shown: what the request shows of the node, if that was made already.
  package init(reading node: Node, shown: Node? = nil, _ request: RESTRequest) {
    let shown = shown ?? Self.shown(node, request)
    let etag =
      request.conditions.wantsETag || request.conditions.ifNoneMatch != nil
      ? TreeHash.etag(shown) : nil
    if let etag, request.conditions.ifNoneMatch == etag {
      self.init(304, request, AnswerText())
    } else {
      self.init(
        200, request, body: Self.text(shown, isEmptyWindow: Self.isWindow(node, request), request))
    }
    if let etag { headers.append("ETag", etag) }
    if let download = request.download {
      headers.append("Content-Disposition", "attachment; filename=\"\(download)\"")
    }
  }

  /// The answer to a write of `node`.
  package init(wrote node: Node, _ request: RESTRequest) {
    self.init(200, request, body: AnswerText(node, request.style))
    if request.conditions.wantsETag { headers.append("ETag", TreeHash.etag(node)) }
  }

  /// The answer to a POST that has made the child `node` with this key.
  package init(posted key: String, _ node: Node, _ request: RESTRequest) {
    var name = NodeBuilder()
    if let member = try? Key("name") { name.append(member, Node(.string(key))) }
    self.init(
      200, request, body: AnswerText(name.finish(), JSONStyle(isPretty: request.print == .pretty)))
    if request.conditions.wantsETag { headers.append("ETag", TreeHash.etag(node)) }
  }

  /// The answer to an update, which returns what the request has sent.
  package init(patched body: UnsafeRawBufferPointer, _ request: RESTRequest) {
    var text = AnswerText()
    // Each line of deep data has as much space before it as the data is deep.
    let isPretty = request.print == .pretty && body.count <= 1 << 20
    text.append(bytes: isPretty ? RESTBody.pretty(body) : RESTBody.compact(body))
    self.init(200, request, body: text)
  }

  package init(deleted request: RESTRequest) {
    self.init(200, request, body: AnswerText("null"))
    if request.conditions.wantsETag { headers.append("ETag", TreeHash.etag(.empty)) }
  }

  /// An answer to a request for something other than data, in JSON.
  package init(text: String, _ request: RESTRequest) {
    self.init(200, request, body: AnswerText(text))
  }

  package init(options request: RESTRequest) {
    self.init(200, request, AnswerText())
    headers.append("Access-Control-Allow-Methods", "GET, PUT, POST, PATCH, DELETE, OPTIONS, HEAD")
    headers.append(
      "Access-Control-Allow-Headers",
      "Authorization, Content-Type, X-Firebase-ETag, If-Match, If-None-Match, "
        + "X-HTTP-Method-Override, X-Firebase-AppCheck, X-Firebase-GMPID, Last-Event-ID")
    headers.append("Access-Control-Max-Age", "3600")
  }

  /// The head of an answer whose body is a stream of events.
  package init(stream request: RESTRequest) {
    self.init(200, request, AnswerText())
    headers.replace("content-type", by: "text/event-stream; charset=utf-8")
  }

  private init(_ status: Int, _ request: RESTRequest, body: AnswerText) {
    if request.print == .silent {
      self.init(204, request, AnswerText())
    } else {
      self.init(status, request, body)
      if request.callback != nil {
        headers.replace("content-type", by: "application/javascript; charset=utf-8")
      }
    }
  }

  // MARK: Reading

  /// What a request shows of the node at its location, of whose children one with `shallow` shows the keys alone.
  package static func shown(_ node: Node, _ request: RESTRequest) -> Node {
    if case .priority = request.resource { return node.priority.map { Node($0) } ?? .empty }
    return node.filtered(by: request.query)
  }

  /// Whether the request asks for some of the children, and there are children.
  private static func isWindow(_ node: Node, _ request: RESTRequest) -> Bool {
    guard let query = request.query else { return false }
    return !query.showsAll && node.isBranch
  }

  private static func text(
    _ node: Node, isEmptyWindow: Bool, _ request: RESTRequest
  ) -> AnswerText {
    var text = AnswerText()
    if let callback = request.callback { text.append("\(callback)(") }
    if node.isEmpty, isEmptyWindow {
      text.append("{}")
    } else if request.isShallow, node.isBranch {
      text.append(keys(of: node), JSONStyle(.exportAsObjects, isPretty: request.print == .pretty))
    } else {
      text.append(node, request.style)
    }
    if request.callback != nil { text.append(");") }
    return text
  }

  /// An object that has `true` for every child.
  private static func keys(of node: Node) -> Node {
    var keys = NodeBuilder()
    node.forEachChild { key, _ in keys.append(key, Node(.bool(true))) }
    return keys.finish()
  }
}
