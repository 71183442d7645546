import Dendro
import Testing

@Suite("A single event whose listener is taken away")
struct RemovedSingleEventTests {
  @Test(
    "who awaits it gets a snapshot of nothing",
    arguments: [DataEventType.childAdded, .childChanged, .childMoved, .childRemoved])
  func removed(type: DataEventType) async throws {
    let database = Database.inMemory()
    let place = database.reference().child("place")
    let answer = Shared<(snapshot: DataSnapshot, previous: String?)?>(nil)
    let waiting = Task {
      let (snapshot, previous) = await place.observeSingleEventAndPreviousSiblingKey(of: type)
      answer.withLock { $0 = (snapshot, previous) }
    }
    // It may not listen yet the first times.
    for _ in 0..<10_000 where answer.withLock({ $0 == nil }) {
      place.removeAllObservers()
      await settle(database)
    }
    let found = try #require(answer.value)
    #expect(!found.snapshot.exists() && found.snapshot.key == "place" && found.previous == nil)
    await waiting.value
    try await database.close()
  }
}
