import DendroPlatform
import Foundation
import Testing

@Suite("dendro: following a writer that was killed")
struct FollowTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  @Test("what the next writers write is shown once each, by watch and by log --follow")
  func killedWriter() throws {
    let writer = try WaitingImport(oneOfTwoLeavesWith: dendro)

    let watch = try dendro.start(["watch", "db", "/", "--json", "--interval", "2"])
    defer { watch.send(SIGKILL) }
    let log = try dendro.start(["log", "db", "--follow", "--json"])
    defer { log.send(SIGKILL) }
    #expect(watch.waitForOutput("\"first\""))
    #expect(log.waitForOutput("/first"))

    writer.end()
    for number in 2...4 { try dendro("set", "db", "/n\(number)", "\(number)") }
    #expect(watch.waitForOutput("/n4"))
    #expect(log.waitForOutput("/n4"))
    for (follower, expected) in [
      (watch, ["1 /", "2 /n2", "3 /n3", "4 /n4"]), (log, ["1 /first", "2 /n2", "3 /n3", "4 /n4"]),
    ] {
      follower.send(SIGTERM)
      let shown = try follower.wait().lines.map { line in
        let object =
          try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
        return "\(object["lsn"] ?? "") \(object["path"] ?? "")"
      }
      #expect(shown == expected)
    }
  }
}
