/// The opening of a WebSocket (RFC 6455, section 4).
package struct Handshake: Sendable {
  /// The value of `Sec-WebSocket-Accept`.
  package let accept: String
  package let namespace: String?
  /// The session of the client's connection before this one.
  package let lastSession: String?
  /// The session of a client that polls, and would change over to this WebSocket.
  package let session: String?
  package let host: String

  /// - Returns: nil if the request is for something other than `/.ws`.
  /// - Throws: `RESTError` if it cannot be answered with a WebSocket.
  package init?(method: String, target: String, headers: HTTPHeaders) throws(RESTError) {
    guard target == "/.ws" || target.hasPrefix("/.ws?") else { return nil }
    let target = try RequestTarget(target)
    func has(_ header: String, _ word: String) -> Bool {
      headers[header]?.lowercased().split { $0 == "," || $0 == " " }.contains { $0 == word }
        ?? false
    }
    guard method == "GET", has("upgrade", "websocket"), has("connection", "upgrade"),
      headers["sec-websocket-version"] == "13", let key = headers["sec-websocket-key"],
      Base64.decode(key.utf8)?.count == 16
    else { throw .badRequest("This address is for WebSockets of version 13.") }
    guard target["v"] == "5" else { throw .badRequest("The protocol's version must be 5.") }
    if let name = target["ns"], !name.isEmpty {
      guard RESTRequest.isNamespace(name) else { throw .badNamespace }
      namespace = name
    } else {
      namespace = headers["host"].flatMap(RESTRequest.namespace(ofHost:))
    }
    lastSession = target["ls"]
    session = target["s"]
    host = headers["host"] ?? ""
    let text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = Base64.encode(SHA1.digest(of: Array(text.utf8)))
  }
}
