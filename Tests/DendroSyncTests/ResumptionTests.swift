import Dendro
import DendroPlatform
import DendroProtocol
import DendroServer
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroSync

/// Databases that come back to `dendro serve`, and get what has changed while they were away.
@Suite("synced databases: resumption")
struct ResumptionTests {
  private let hello = """
    {"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"h","s":"s",\
    "dendro":{"branch":"b","lsn":9,"since":0}}}}
    """

  /// The next listen, and its hash and the write that it names.
  private func listen(
    _ server: ScriptedServer
  ) throws -> (number: Int64, hash: String, since: String) {
    while true {
      let request = try server.request()
      guard request.action == "q" else {
        try server.answer(request.number)
        continue
      }
      return (
        request.number, request.body.string("h") ?? "",
        request.body["since"].map { String(decoding: $0, as: UTF8.self) } ?? "-"
      )
    }
  }

  private func greet(_ server: ScriptedServer) throws {
    try server.accept(greets: false)
    try server.send(hello)
  }

  private func hash(_ json: String) throws -> String {
    TreeHash.hash(try JSONParser.parse(json))
  }

  @Test(
    "an update that takes the only child away and adds another leaves the same priority on both sides"
  )
  func priorities() async throws {
    try await serving { owner, server in
      let root = owner.reference()
      try await root.child("p").setValue(["a": 1], andPriority: 5)
      let database = synced(Int(server.port))
      database.reference().observe(.value) { _ in }
      _ = try await database.reference().getData()
      for update in [["p/a": NSNull(), "p/b": 1], ["p/c": 2, "p/b": NSNull()]] as [[String: Any]] {
        try await root.updateChildValues(update)
        let all = try await root.getData().node
        let keys = all.child(try Key("p")).children.map(\.key)
        try await eventually {
          try await database.reference(withPath: "p").getData().node.children.map(\.key) == keys
        }
        #expect(try await database.reference().getData().node == all)
      }
      try await database.close()
    }
  }

  @Test("a listen names the last write that was heard, also after the next opening")
  func heard() async throws {
    let folder = try TemporaryFolder()
    let server = try ScriptedServer()
    var database = try synced(server.port, at: folder.path + "/db")
    let viewer = Viewer(database)
    viewer.listen("a", database.reference(withPath: "a"))
    database.goOnline()
    try greet(server)
    let first = try listen(server)
    #expect(first.hash.isEmpty && first.since == "0")
    try server.push("d", #"{"p":"a","d":{"x":1,"y":2}}"#)
    try server.answer(first.number, data: #"{"lsn":7}"#)
    _ = try await viewer.take(3)

    try greet(server)
    let second = try listen(server)
    #expect(second.hash == (try hash(#"{"x":1,"y":2}"#)) && second.since == "7")
    try server.push("m", #"{"p":"a","d":{"x":3,"y":null},"h":"\#(try hash(#"{"x":3}"#))"}"#)
    try server.answer(second.number, data: #"{"lsn":12}"#)
    let seen = try await viewer.take(3)["a"] ?? []
    #expect(seen.count == 3)
    #expect(seen.last == .value(try JSONParser.parse(#"{"x":3}"#)))
    // The answer comes behind the push that the viewer has seen.
    _ = try server.settled()
    try await database.close()

    database = try synced(server.port, at: folder.path + "/db")
    let other = Viewer(database)
    other.listen("a", database.reference(withPath: "a"))
    database.goOnline()
    try greet(server)
    let third = try listen(server)
    #expect(third.hash == (try hash(#"{"x":3}"#)) && third.since == "12")
    try await database.close()
  }

  @Test(
    "the database asks which write it has received; that counts for the listens that have an answer"
  )
  func asked() async throws {
    let server = try ScriptedServer()
    let client = Mutex<SyncClient?>(nil)
    let address = RemoteAddress(
      isSecure: false, host: "127.0.0.1", port: server.port, namespace: nil)
    let database = Database.remote(RemoteSetup(address), options: DatabaseOptions()) {
      setup, observer in
      let made = SyncClient(setup, observer)
      client.withLock { $0 = made }
      return made
    }
    let viewer = Viewer(database)
    viewer.listen("a", database.reference(withPath: "a"))
    database.goOnline()
    try greet(server)
    let a = try listen(server)
    try server.push("d", #"{"p":"a","d":1}"#)
    try server.answer(a.number, data: #"{"lsn":7}"#)
    _ = try await viewer.take(1)
    viewer.listen("b", database.reference(withPath: "b"))
    let b = try listen(server)
    let made = try #require(client.withLock { $0 })
    made.askLSN(over: made.reading(\.line))
    let asked = try server.request()
    #expect(asked.action == "lsn")
    try server.answer(asked.number, data: #"{"lsn":20}"#)
    try server.push("d", #"{"p":"b","d":1}"#)
    try server.answer(b.number, data: #"{"lsn":8}"#)
    _ = try await viewer.take(1)
    try greet(server)
    #expect(try [listen(server).since, listen(server).since] == ["20", "8"])
    try await database.close()
  }

  @Test(
    "if a value does not get its hash, the database connects again and gets the whole; listeners see nothing wrong"
  )
  func mismatch() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    let viewer = Viewer(database)
    viewer.listen("a", database.reference(withPath: "a"))
    try greet(server)
    let first = try listen(server)
    try server.push("d", #"{"p":"a","d":{"x":1}}"#)
    try server.answer(first.number, data: #"{"lsn":7}"#)
    _ = try await viewer.take(2)
    try greet(server)
    let second = try listen(server)
    #expect(second.since == "7")
    try server.together {
      try server.push("m", #"{"p":"a","d":{"y":2},"h":"AAAA"}"#)
      try server.push("d", #"{"p":"a/z","d":3}"#)
      try server.answer(second.number, data: #"{"lsn":9}"#)
    }
    #expect(throws: ScriptedServer.Failure.self) { try server.settled() }
    database.goOnline()
    try greet(server)
    let third = try listen(server)
    #expect(third.hash == (try hash(#"{"x":1}"#)) && third.since == "0")
    #expect(await viewer.take().isEmpty)
    // One that goes on so is no server.
    try server.push("m", #"{"p":"a","d":{"y":2},"h":"AAAA"}"#)
    #expect(throws: ScriptedServer.Failure.self) { try server.settled() }
    database.goOnline()
    try greet(server)
    let last = try listen(server)
    try server.push("d", #"{"p":"a","d":{"x":1,"z":3}}"#)
    try server.answer(last.number, data: #"{"lsn":10}"#)
    let seen = try await viewer.take(2)["a"] ?? []
    #expect(seen.last == .value(try JSONParser.parse(#"{"x":1,"z":3}"#)))
    // Another history.
    try server.accept(greets: false)
    try server.send(hello.replacing("\"b\"", with: "\"c\""))
    #expect(try listen(server).since == "0")
    try await database.close()
  }

  @Test("a server that does not number writes is asked as by the original")
  func otherServers() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    let viewer = Viewer(database)
    viewer.listen("a", database.reference(withPath: "a"))
    try server.accept()
    #expect(try listen(server).since == "-")
    try await database.close()
  }

  @Test(
    "after each absence a database has what the server has",
    arguments: 1...UInt64(Scale.scaled(100)))
  func absences(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let folder = try TemporaryFolder()
    let owner = try await Database.open(at: folder.path + "/server")
    let server = try await DatabaseServer.start(serving: owner)
    let root = owner.reference()
    func change() {
      let path = "\(generator.below(6))/\(generator.below(6))/\(generator.below(6))"
      switch generator.below(5) {
      case 0: root.child(path).removeValue { _, _ in }
      case 1: root.child(path).setPriority(generator.below(9)) { _, _ in }
      case 2: root.updateChildValues([path: ["x": generator.below(99)], "n": 1]) { _, _ in }
      case 3: root.child(path).parent?.setValue(["y": generator.below(99)]) { _, _ in }
      default: root.child(path).setValue(generator.below(99)) { _, _ in }
      }
    }
    // Smaller values are sent as a whole.
    root.child("large").setValue(String(repeating: "x", count: 70_000)) { _, _ in }
    for _ in 0..<50 { change() }
    let notes = Mutex<[String]>([])
    func open() throws -> Database {
      try synced(Int(server.port), at: folder.path + "/client") {
        $0.logging = { message in notes.withLock { $0.append("\(message)") } }
      }
    }
    var database = try open()
    var isOpen = false
    for _ in 0..<12 {
      if !isOpen {
        database.reference().observe(.value) { _ in }
        database.reference(withPath: "3").observe(.value) { _ in }
        isOpen = true
      }
      database.goOnline()
      for _ in 0..<generator.below(4) { change() }
      try await owner.synchronize()
      let all = try await root.getData().node
      try await eventually { try await database.reference().getData().node == all }
      if generator.oneIn(3) {
        try await database.close()
        database = try open()
        isOpen = false
      } else {
        database.goOffline()
      }
      for _ in 0..<generator.below(6) { change() }
      if generator.oneIn(6) { try await owner.checkpoint() }
    }
    try await database.close()
    #expect(try metric("dendro_resumed_listens_total", of: server) > 0, "seed \(seed)")
    let misfits = notes.withLock { $0.filter { $0.contains("does not fit") } }
    #expect(misfits.isEmpty, "seed \(seed): \(misfits)")
    await server.stop()
    try await owner.close()
  }

  /// One of the figures of `/.metrics`.
  private func metric(_ name: String, of server: DatabaseServer) throws -> Int {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = server.port.bigEndian
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    try #require(isConnected)
    let request = Array("GET /.metrics HTTP/1.0\r\n\r\n".utf8)
    try #require(send(socket, request, request.count, 0) == request.count)
    var answer: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = recv(socket, &part, part.count, 0)
      if count <= 0 { break }
      answer += part[..<count]
    }
    let lines = String(decoding: answer, as: UTF8.self).split(whereSeparator: \.isNewline)
    let line = try #require(lines.first { $0.hasPrefix(name + " ") })
    return try #require(Int(line.split(separator: " ")[1]))
  }
}
