import DendroEngine
import DendroTree
import Foundation
import Testing

/// What clients had registered for their end, in a database that was damaged.
@Suite("dendro: repair, and operations on disconnect")
struct WithdrawnOperationsTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  /// A database with what a server leaves that was killed: two clients have registered something.
  private func fill() throws {
    try dendro("set", "db", "/n", "1")
    try dendro("set", "db", "/text", "\"which will be damaged\"")
    try dendro("set", "db", "/m", "1")
    let engine = try Engine.open(at: "\(folder.path)/db", mode: .readWriteExisting)
    let registered: [(String, Write)] = [
      ("one", .increment(try Path(parsing: "n"), .integer(1))),
      ("two", .set(try Path(parsing: "gone/two"), Node(.bool(true)))),
    ]
    for (session, write) in registered {
      let place = try Path(parsing: "onDisconnect/\(session)/0")
      let entry = Node(keeping: EncodedWrite(Draft(write)))
      engine.submit(EncodedWrite(nil, system: EncodedWrite(.set(place, entry)))) { result in
        if case .failure(let error) = result { Issue.record("\(error)") }
      }
    }
    try engine.close()
  }

  private func served(_ directory: String) throws -> String {
    let (server, port) = try dendro.serve([directory, "--quiet"])
    let body = Result { try Tool.request("GET", port, "/.json").body }
    server.send(SIGTERM)
    // The next server would find the directory locked.
    #expect(try server.wait().status == 0)
    return try body.get()
  }

  @Test("where a write is missing, they are listed and taken out, and no server does them")
  func withdrawn() throws {
    try fill()
    let first = "db/00000000000000000001.log"
    var bytes = folder.bytes(first)
    bytes[try #require(bytes.range(of: Data("which will".utf8))).lowerBound] ^= 1
    try folder.write(bytes, to: first)
    let text = try dendro("repair", "db", "new")
    #expect(text.status == 1)
    #expect(text.output.contains("the operations on disconnect of 2 sessions"), "\(text.output)")
    #expect(text.output.contains("n + 1") && text.output.contains("gone/two: true"))
    let report = try dendro("repair", "db", "again", "--json").object
    #expect(report["secondRootInDoubt"] as? Bool == true)
    let kept = report["withdrawnOnDisconnect"] as? [[String: Any]] ?? []
    #expect(kept.compactMap { $0["session"] as? String } == ["one", "two"])
    let entries = kept.compactMap { ($0["entries"] as? [[String: Any]])?.first }
    #expect(entries.compactMap { $0["path"] as? String } == ["n", "gone/two"])
    #expect(entries.first?["delta"] as? Int == 1 && entries.last?["value"] as? Bool == true)
    #expect(try dendro("verify", "new").status == 0)
    let (new, again) = (try dendro("get", "new", "/"), try dendro("get", "again", "/"))
    #expect(new.output == again.output)
    for _ in 0..<2 { #expect(try served("new") == #"{"m":1,"n":1}"#) }
    // The history still shows what was registered.
    #expect(try dendro("log", "new", "--system").output.contains("onDisconnect/one"))
  }

  @Test("rules that are in doubt give way to rules that allow nothing")
  func rules() throws {
    try fill()
    let engine = try Engine.open(at: "\(folder.path)/db", mode: .readWriteExisting)
    let rules = EncodedWrite(
      .set(ServerRules.rules, Node(.string("{\"rules\":{\"m\":{\".read\":true}}}"))))
    engine.submit(EncodedWrite(nil, system: rules)) { result in
      if case .failure(let error) = result { Issue.record("\(error)") }
    }
    try engine.close()
    let first = "db/00000000000000000001.log"
    var bytes = folder.bytes(first)
    bytes[try #require(bytes.range(of: Data("which will".utf8))).lowerBound] ^= 1
    try folder.write(bytes, to: first)
    #expect(try dendro("repair", "db", "new").output.contains("locked"))
    #expect(try dendro("repair", "db", "again", "--json").object["withdrawnRules"] as? Bool == true)
    #expect(try dendro("verify", "new").status == 0)
    let (server, port) = try dendro.serve(["new", "--quiet"])
    defer { server.send(SIGTERM) }
    #expect(try Tool.request("GET", port, "/m.json").status == 401)
    #expect(try Tool.request("GET", port, "/m.json?access_token=owner").body == "1")
    let text = try Tool.request("GET", port, "/.settings/rules.json?access_token=owner").body
    #expect(text.contains("only administrators"))
  }

  @Test(
    "a repair that misses writes renames the history of numbered writes; one that misses none keeps its name"
  )
  func history() throws {
    try fill()
    let names = try folder.names(in: "db").filter { $0.hasSuffix(".log") }.sorted()
    let first = "db/\(names[0])"
    let whole = folder.bytes(first)
    func branch(afterDamageAt index: Int, _ directory: String) throws -> Node {
      var bytes = whole
      bytes[index] ^= 1
      try folder.write(bytes, to: first)
      try dendro("repair", "db", directory)
      let engine = try Engine.open(at: "\(folder.path)/\(directory)", mode: .readOnly)
      let node = engine.systemNode(at: NumberedResults.root).child(NumberedResults.branch)
      try engine.close()
      return node
    }
    // The head of the log, which has no write.
    #expect(try branch(afterDamageAt: 40, "same").isEmpty)
    let index = try #require(whole.range(of: Data("which will".utf8))).lowerBound
    let (one, two) = (
      try branch(afterDamageAt: index, "one"), try branch(afterDamageAt: index, "two")
    )
    #expect(!one.isEmpty && !two.isEmpty && one != two)
  }

  @Test("where nothing is missing, they stay, and the next server does them once")
  func certain() throws {
    try fill()
    let names = try folder.names(in: "db").filter { $0.hasSuffix(".log") }.sorted()
    var bytes = folder.bytes("db/\(names[0])")
    bytes[40] ^= 1
    try folder.write(bytes, to: "db/\(names[0])")
    let outcome = try dendro("repair", "db", "new", "--json")
    #expect(outcome.status == 0 && outcome.object["secondRootInDoubt"] as? Bool == false)
    #expect((outcome.object["withdrawnOnDisconnect"] as? [Any])?.isEmpty == true)
    for _ in 0..<2 {
      #expect(
        try served("new")
          == #"{"gone":{"two":true},"m":1,"n":2,"text":"which will be damaged"}"#)
    }
  }
}
