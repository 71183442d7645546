import Dendro
import Testing

/// Servers that do not change over to a WebSocket.
@Suite("synced databases: refused upgrades")
struct RefusedUpgradeTests {
  @Test(
    "a server that does not change over is tried again, and the log says why",
    arguments: [
      (
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
        "the server refuses the connection: 403 Forbidden"
      ),
      (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        "the server does not change over to a WebSocket"
      ),
      (
        // The answer to another key.
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
        "the server does not change over to a WebSocket"
      ),
      (
        "HTTP/1.1 101 Switching Protocols\r\nX: " + String(repeating: "x", count: 20_000),
        "the head of the answer is too long"
      ),
      ("220 mail.example ESMTP\r\n\r\n", "the server does not speak HTTP"),
      ("\r\n\r\n", "the server does not speak HTTP"),
    ])
  func refused(answer: String, reason: String) async throws {
    let server = try ScriptedServer()
    let log = LogLines()
    let database = synced(server.port) { $0.logging = { log.note($0) } }
    _ = try server.take()
    try server.write(Array(answer.utf8))
    try server.framesUntilEnd()
    try await goesOn(server, database, log, reason)
  }

  @Test("a server that closes the connection within the head of its answer is tried again")
  func half() async throws {
    let server = try ScriptedServer()
    let log = LogLines()
    let database = synced(server.port) { $0.logging = { log.note($0) } }
    _ = try server.take()
    try server.write(Array("HTTP/1.1 101 Switching Protocols\r\nUpgr".utf8))
    server.cut()
    try await goesOn(server, database, log, "the server has closed it")
  }

  private func goesOn(
    _ server: ScriptedServer, _ database: Database, _ log: LogLines, _ reason: String
  ) async throws {
    try server.accept()
    try await eventually { log.contains("the server cannot be reached: \(reason)") }
    database.reference(withPath: "a").setValue(1, withCompletionBlock: { _, _ in })
    let (number, _, _) = try server.request()
    try server.answer(number)
    try await database.waitForPendingWrites()
    try await database.close()
  }
}
