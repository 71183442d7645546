import Dendro
import Foundation
import Synchronization
import Testing

@Suite("HowDoI.md")
struct HowDoISamples {
  @Test("writes")
  func writes() async throws {
    let database = Database.inMemory()
    let (id, seat, user, text) = ("ada", "12a", "ada", "Hello")
    // sample
    try await database.reference(withPath: "users/\(id)/theme").setValue("dark")
    // end
    // sample
    try await database.reference(withPath: "posts/rings/views").setValue(ServerValue.increment(1))
    // end
    // sample
    try await database.reference().updateChildValues([
      "posts/rings/title": "Rings", "titles/rings": "Rings", "drafts/rings": NSNull(),
    ])
    // end
    // sample
    let place = database.reference(withPath: "seats/\(seat)")
    let (committed, _) = try await place.runTransactionBlock { data in
      guard data.value == nil || data.value is NSNull else { return .abort() }
      data.value = user
      return .success(withValue: data)
    }
    // end
    #expect(committed)
    // sample
    let message = database.reference(withPath: "messages").childByAutoId()
    try await message.setValue(["text": text, "at": ServerValue.timestamp()])
    // end
    let all = try await database.reference().getData()
    #expect(all["users/ada/theme"].string == "dark" && all["seats/12a"].string == "ada")
    #expect(shown(all["posts"].value) == #"{rings:{title:"Rings",views:1}}"#)
    #expect(all["titles/rings"].string == "Rings" && all["messages"].count == 1)
  }

  @Test("a list that stays up to date")
  func list() async throws {
    let database = Database.inMemory()
    let scores = Dictionary(uniqueKeysWithValues: (1...12).map { ("p\($0)", ["score": $0]) })
    try await database.reference(withPath: "players").setValue(scores)
    let seen = Mutex<[[String]]>([])
    @Sendable func show(_ players: DataSnapshot) { seen.withLock { $0.append(players.map(\.key)) } }
    try await runEndless(until: { seen.withLock { !$0.isEmpty } }) {
      // sample
      let best = database.reference(withPath: "players").queryOrdered(byChild: "score")
      for try await players in best.queryLimited(toLast: 10).snapshots { show(players) }
      // end
    }
    #expect(seen.withLock { $0.first } == (3...12).map { "p\($0)" })
  }

  @Test("other readers, and the past")
  func readers() async throws {
    let temporary = TemporaryDirectory()
    let directory = temporary.path
    let writer: Database = try await Database.open(at: directory)
    try await writer.reference(withPath: "prices").setValue(["oak": 7])
    // sample
    let mirror = try await Database.open(following: directory)  // it reads only
    // end
    #expect(try await mirror.reference(withPath: "prices/oak").getData().int == 7)
    try await mirror.close()
    try await writer.close()
    // Opened for reading only, it ends behind the last write.
    let database: Database = try await Database.open(readOnly: directory)
    var lastSeen: Database.LSN = 0
    // sample
    for try await change in database.changes(since: lastSeen) { lastSeen = change.lsn }
    // end
    #expect(lastSeen == 1)
    // sample
    let yesterday = Date() - 24 * 3600
    let prices = try await database.reference(withPath: "prices").snapshot(at: yesterday)
    // end
    #expect(!prices.exists())
    try await database.close()
  }

  @Test("a new form of the data")
  func migration() async throws {
    let database = Database.inMemory()
    try await database.reference(withPath: "settings/dark").setValue(true)
    // sample
    try await database.migrate(
      versionAt: "version",
      [
        { data in
          data["settings/theme"].string = data["settings/dark"].bool == true ? "dark" : "light"
        },
        { data in data["settings/dark"].value = nil },
      ])
    // end
    let all = try await database.reference().getData()
    #expect(shown(all.value) == #"{settings:{theme:"dark"},version:2}"#)
  }

  @Test("a test of one's own")
  func test() async throws {
    // sample
    let database = Database.inMemory()
    // end
    #expect(try await !database.reference().getData().exists())
  }
}
