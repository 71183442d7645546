/// Clients of which half get and put by REST, and half put over WebSockets.
enum HonestClients {
  static func all(_ count: Int, _ server: ServeProcess) throws -> [PacedLoad.Client] {
    try (0..<count).map { number in
      let connection = try LoadConnection(port: server.port)
      let path = "honest/c\(number)"
      if isSocket(number) {
        try connection.upgrade()
        let request: (Int) -> [UInt8] = {
          WireRequestBytes.request($0 + 1, "p", "{\"p\":\"/\(path)\",\"d\":\(1_000_000 + $0)}")
        }
        let answer = try connection.callWire(request(-1))
        return PacedLoad.Client(
          connection: connection, request: request, answerByteCount: answer.count,
          answerStart: Array(answer.prefix(2)))
      }
      let put = HTTPRequest.put(path, "1000000")
      let written = try connection.call(put)
      if number % 4 == 1 {
        return PacedLoad.Client(
          connection: connection, request: { HTTPRequest.put(path, "\(1_000_000 + $0)") },
          answerByteCount: written.count, answerStart: Array("HTTP/1.1 204".utf8))
      }
      let get = HTTPRequest.get(path)
      let answer = try connection.call(get)
      return PacedLoad.Client(
        connection: connection, request: { _ in get }, answerByteCount: answer.count,
        answerStart: Array("HTTP/1.1 200".utf8))
    }
  }

  private static func isSocket(_ number: Int) -> Bool { number % 2 == 0 }

  static func socketCount(_ count: Int) -> Int { (0..<count).count(where: isSocket) }
}
