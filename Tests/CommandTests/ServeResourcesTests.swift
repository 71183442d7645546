import DendroPlatform
import DendroTestSupport
import Foundation
import Testing

@Suite("dendro: serve where the system gives little")
struct ServeResourcesTests {
  private let dendro: Tool
  init() throws { dendro = Tool(folder: try Folder()) }

  /// Starts a server behind a command of the shell.
  private func serve(
    behind command: String, _ options: [String] = [], redirecting: String = ""
  ) throws -> Tool.Running {
    try dendro.start(
      ["-c", "\(command); exec \"$0\" \"$@\" \(redirecting)", Tool.path, "serve", "db"]
        + ["--port", "0", "--json"] + options, executable: "/bin/sh")
  }

  private func port(of server: Tool.Running) throws -> UInt16 {
    #expect(server.waitForOutput("\n"))
    let line = Data(server.text(server.output).utf8)
    let object = try JSONSerialization.jsonObject(with: line) as? [String: Any]
    return UInt16(try #require(object?["port"] as? Int))
  }

  private func descriptorCount(of server: Tool.Running) throws -> Int {
    try FileManager.default.contentsOfDirectory(
      atPath: "/proc/\(server.process.processIdentifier)/fd"
    ).count
  }

  @Test("connections leave descriptors free, and who comes when some have left is served")
  func descriptors() throws {
    let server = try serve(behind: "ulimit -n 128")
    let port = try port(of: server)
    let upgrade =
      "GET /.ws?v=5&ns=default HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
      + "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    let slow = "GET /x.json HTTP/1.1\r\nHost: localhost\r\n"
    for text in [upgrade, slow] {
      var sockets: [CInt] = []
      for _ in 0..<200 {
        // One that has no room in the queue of the system either.
        guard let socket = try? PlainRequest.open(port, sending: text) else { continue }
        sockets.append(socket)
      }
      if text == upgrade {
        let answers = sockets.map { PlainRequest.read(from: $0) }
        #expect(answers.contains { $0.hasPrefix("HTTP/1.1 101") })
      }
      #expect(try descriptorCount(of: server) < 112)
      for socket in sockets { close(socket) }
    }
    // Connections that have ended may take places for a moment.
    func put(_ target: String) -> Int {
      var status = 0
      while server.process.isRunning, status == 0 {
        status = (try? PlainRequest.send("PUT", port, target, "1"))?.status ?? 0
      }
      return status
    }
    #expect(put("/x.json") == 200)
    // Databases make room for others.
    for number in 0..<40 {
      #expect(put("/x.json?ns=n\(number)") == 200)
      #expect(try descriptorCount(of: server) < 96)
    }
    #expect(try PlainRequest.send("GET", port, "/x.json").body == "1")
    server.send(SIGTERM)
    #expect(try server.wait().status == 0)
  }

  @Test("a server takes as many descriptors as it may, and does not begin with few")
  func limits() throws {
    let server = try serve(behind: "ulimit -n 512; ulimit -Sn 128")
    _ = try port(of: server)
    let limits = try String(
      contentsOfFile: "/proc/\(server.process.processIdentifier)/limits", encoding: .utf8)
    #expect(try #require(limits.firstMatch(of: /Max open files +(\d+)/)).1 == "512")
    server.send(SIGTERM)
    #expect(try server.wait().status == 0)
    let few = try serve(behind: "ulimit -n 48").wait()
    #expect(few.status == 69 && !few.wasSignalled)
    #expect(
      few.errors.contains("may open 48 files, and a server needs at least 64"), "\(few.errors)")
  }

  @Test(
    "a server goes on although nobody reads its log, and ends in order",
    arguments: [(200, true), (200, false), (800, true)])
  func log(count: Int, isReadLater: Bool) throws {
    let fifo = dendro.folder.path + "/log"
    try #require(mkfifo(fifo, 0o600) == 0)
    let reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(reader >= 0)
    defer { close(reader) }
    let server = try serve(behind: "true", redirecting: "2>log")
    let port = try port(of: server)
    // More than a pipe takes; 800 are more than wait.
    for number in 0..<count {
      let target = "/x.json?n=\(number)&x=\(String(repeating: "y", count: 2000))"
      #expect(try PlainRequest.send("GET", port, target).status == 200)
    }
    if isReadLater {
      // A client may have its answer, and ask once more, before the line of the request is written.
      let ends = count == 200 ? (190..<200).map { "n=\($0)&" } : ["are left out"]
      let deadline = ContinuousClock.now + .seconds(120)
      var text: [UInt8] = []
      var part = [UInt8](repeating: 0, count: 1 << 16)
      func isComplete() -> Bool {
        let text = String(decoding: text, as: UTF8.self)
        return ends.allSatisfy { text.contains($0) }
      }
      while ContinuousClock.now < deadline, !isComplete() {
        let got = read(reader, &part, part.count)
        if got > 0 { text += part[..<got] } else { usleep(1000) }
      }
      let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
      let numbers = lines.joined().matches(of: /n=(\d+)&/).compactMap { Int($0.1) }
      #expect(numbers.sorted() == Array(0..<numbers.count) && numbers.count >= 200)
      for line in lines.dropLast() {
        #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any])
      }
      #expect(isComplete())
      if count > 200 { #expect(lines.last?.contains("are left out") == true) }
    }
    server.send(SIGTERM)
    #expect(try server.wait().status == 0)
  }
}
