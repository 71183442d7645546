import Dendro
import DendroServer
import Testing

/// WebSockets whose clients do not read what they have asked for.
@Suite("serving: clients that do not read")
struct SlowReaderTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  /// A value of many children and of strings that are longer than a frame.
  private func fill(_ served: Served) async throws -> Int {
    let text = String(repeating: "é😀x", count: 5_000)
    var value: [String: Any] = [:]
    for number in 0..<10_000 { value["k\(number)"] = "value \(number)" }
    for number in 0..<20 { value["long\(number)"] = text }
    try await served.database.reference(withPath: "big").setValue(value)
    return try served.client()("GET", "/big.json?ns=app").body.utf8.count
  }

  @Test(
    "what many clients have asked for takes no memory before they read it, and all of it comes then"
  )
  func unread() async throws {
    try await serving { served in
      let byteCount = try await fill(served)
      let clients = try (0..<40).map { _ in try WebSocketClient(served, receiveBuffer: 4096) }
      for client in clients {
        try client.request("q", "{\"p\":\"/big\",\"h\":\"\"}")
        try client.request("g", "{\"p\":\"/big\",\"q\":{}}")
      }
      while try served.figure("listens") < clients.count {}
      // Others go on, whoever does not read.
      let other = try WebSocketClient(served)
      for number in 0..<50 {
        #expect(try other("p", "{\"p\":\"/other\",\"d\":\(number)}") == [ok])
      }
      #expect(try served.figure("session_bytes") < clients.count * (512 << 10))
      let whole = try served.client()("GET", "/big.json?ns=app").body
      for client in clients[..<2] {
        let push = try client.push()
        #expect(push.utf8.count > byteCount && push.hasSuffix("\"d\":\(whole)}"))
        #expect(try client.push() == "\"r\":1,\"b\":{\"s\":\"ok\",\"d\":{}}")
        #expect(try client.push().hasSuffix("\"d\":\(whole)}"))
      }
    }
  }

  @Test("a client that takes nothing is closed in the end, and one that is silent is not")
  func stopped() async throws {
    try await serving({ $0.readTimeout = .milliseconds(10) }) { served in
      _ = try await fill(served)
      let silent = try WebSocketClient(served)
      let client = try WebSocketClient(served, receiveBuffer: 4096)
      for _ in 0..<8 { try client.request("g", "{\"p\":\"/big\",\"q\":{}}") }
      while try served.figure("sessions") > 1 { try await Task.sleep(for: .milliseconds(20)) }
      #expect(try served.figure("session_bytes") == 0)
      #expect(try silent("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
    }
  }
}
