import Dendro
import Foundation
import Testing

@Suite("HowDoI.md")
struct HowDoISamples {
  /// Compiled, not run: some of them go on for ever.
  static func tasks(
    _ database: Database, in directory: String, _ id: String, _ seat: String, _ user: String,
    _ text: String, _ lastSeen: inout Database.LSN, show: (DataSnapshot) -> Void
  ) async throws {
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
    _ = committed
    // sample
    let message = database.reference(withPath: "messages").childByAutoId()
    try await message.setValue(["text": text, "at": ServerValue.timestamp()])
    // end
    // sample
    let best = database.reference(withPath: "players").queryOrdered(byChild: "score")
    for try await players in best.queryLimited(toLast: 10).snapshots { show(players) }
    // end
    // sample
    let mirror = try await Database.open(following: directory)  // it reads only
    // end
    _ = mirror
    // sample
    for try await change in database.changes(since: lastSeen) { lastSeen = change.lsn }
    // end
    // sample
    let yesterday = Date() - 24 * 3600
    let prices = try await database.reference(withPath: "prices").snapshot(at: yesterday)
    // end
    _ = prices
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
  }

  static func test() {
    // sample
    let database = Database.inMemory()
    // end
    _ = database
  }
}
