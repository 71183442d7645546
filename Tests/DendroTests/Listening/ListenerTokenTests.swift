import Dendro
import DendroTestSupport
import Foundation
import Testing

@Suite("Listeners that end themselves")
struct ListenerTokenTests {
  private let database = Database.inMemory()
  private var ref: DatabaseReference { database.reference().child("rooms/7") }

  private struct Message: Codable, Equatable, Sendable {
    var text: String
  }

  @Test("a listener is there as long as its token")
  func token() async throws {
    let seen = Shared<[Int]>([])
    var token: ListenerToken? = ref.listen { snapshot in
      seen.withLock { $0.append(snapshot.int ?? 0) }
    }
    try await ref.setValue(1)
    await database.waitForPendingEvents()
    #expect(token != nil && seen.value == [0, 1])
    token = nil
    try await ref.setValue(2)
    await database.waitForPendingEvents()
    #expect(seen.value == [0, 1])
    #expect(database.listenedCount == 0)
  }

  @Test("a token that is cancelled hears no more, as often as it is")
  func cancelling() async throws {
    let keys = Shared<[String]>([])
    let token = ref.listen(to: .childAdded) { child in keys.withLock { $0.append(child.key) } }
    let other = ref.listen(to: .childAdded) { child in
      keys.withLock { $0.append("other " + child.key) }
    }
    try await ref.child("a").setValue(1)
    await database.waitForPendingEvents()
    token.cancel()
    token.cancel()
    try await ref.child("b").setValue(1)
    await database.waitForPendingEvents()
    #expect(keys.value == ["a", "other a", "other b"])
    withExtendedLifetime(other) {}
  }

  @Test("the cancel block gets the reason why nothing follows")
  func reason() async throws {
    let codes = Shared<[DatabaseError.Code?]>([])
    let token = ref.listen { _ in
    } onCancel: { error in
      codes.withLock { $0.append((error as? DatabaseError)?.code) }
    }
    let bad = database.reference(withPath: "a.b").listen { _ in
    } onCancel: { error in
      codes.withLock { $0.append((error as? DatabaseError)?.code) }
    }
    try await database.close()
    await database.waitForPendingEvents()
    #expect(codes.value == [.invalidPath, .closed])
    withExtendedLifetime((token, bad)) {}
  }

  @Test("values of a type, and errors for states that do not fit, after which listening goes on")
  func typed() async throws {
    let lines = Shared<[String]>([])
    let token = ref.listen(as: Message?.self) { message in
      lines.withLock { $0.append(message?.text ?? "nothing") }
    } onError: { error in
      guard case DecodingError.typeMismatch(_, let context) = error else {
        return lines.withLock { $0.append("\(error)") }
      }
      let place = context.codingPath.map(\.stringValue).joined(separator: "/")
      lines.withLock { $0.append("no text at \(place)") }
    }
    try await ref.setValue(from: Message(text: "Hello"))
    try await ref.child("text").setValue(5)
    try await ref.child("text").setValue("again")
    await database.waitForPendingEvents()
    // Errors come behind the events that were there.
    #expect(Set(lines.value) == ["nothing", "Hello", "no text at rooms/7/text", "again"])
    try await database.close()
    await database.waitForPendingEvents()
    #expect(lines.value.last == "DatabaseClosed: the database is closed")
    withExtendedLifetime(token) {}
  }

  @Test("without a block for errors the error handler gets them")
  func unhandled() async throws {
    var options = DatabaseOptions()
    let errors = Shared<[DatabaseError]>([])
    options.errorHandler = { error in errors.withLock { $0.append(error) } }
    let database = Database.inMemory(options: options)
    let ref = database.reference().child("a")
    let token = ref.listen(as: Int?.self) { _ in }
    try await ref.setValue("no number")
    await database.waitForPendingEvents()
    await database.waitForPendingEvents()
    let error = try #require(errors.value.first)
    #expect(error.code == .invalidData && error.cause is DecodingError)
    withExtendedLifetime(token) {}
  }

  @Test("children as values of a type, in the order of the query")
  func children() async throws {
    let texts = Shared<[[String]]>([])
    let left = Shared<[String]>([])
    let token = ref.queryOrderedByKey().queryLimited(toLast: 2).listen(
      as: Children<Message>.self,
      undecodable: .skipping { child, _ in left.withLock { $0.append(child.key) } }
    ) { messages in
      texts.withLock { $0.append(messages.values.map(\.text)) }
    }
    for key in ["a", "b", "c"] {
      try await ref.child(key).setValue(from: Message(text: "text \(key)"))
      await database.waitForPendingEvents()
    }
    try await ref.child("d").setValue(5)
    await database.waitForPendingEvents()
    #expect(
      texts.value == [
        [], ["text a"], ["text a", "text b"], ["text b", "text c"], ["text c"],
      ])
    #expect(left.value == ["d"])
    withExtendedLifetime(token) {}
  }

  @MainActor private final class Scoreboard {
    var count = 0
    var token: ListenerToken?

    func listen(to ref: DatabaseReference) {
      token = ref.listen(as: Int?.self) { [weak self] in self?.count = $0 ?? -1 }
    }
  }

  @Test("blocks are called on the actor in which they are written")
  @MainActor func isolation() async throws {
    var board: Scoreboard? = Scoreboard()
    board?.listen(to: ref)
    try await ref.setValue(3)
    await database.waitForPendingEvents()
    #expect(board?.count == 3)
    // What holds the token is released, since the block holds it weakly.
    weak let released = board
    board = nil
    #expect(released == nil)
  }
}

@Suite("Waiting for events")
struct PendingEventsTests {
  private let directory = TemporaryDirectory()

  @Test("what was written before has been told, completions included")
  func told() async throws {
    let database = try await Database.open(at: directory.path)
    let ref = database.reference().child("a")
    let events = Shared<[Int]>([])
    let completions = Shared<[Int]>([])
    let handle = ref.observe(.value) { snapshot in
      events.withLock { $0.append(snapshot.int ?? -1) }
    }
    for number in 1...100 {
      ref.withoutWaiting { ref in
        ref.setValue(number) { _, _ in completions.withLock { $0.append(number) } }
      }
      if number % 10 == 0 {
        await database.waitForPendingEvents()
        #expect(events.value.last == number)
        #expect(completions.value == Array(1...number))
      }
    }
    ref.removeObserver(withHandle: handle)
    try await database.close()
    // Of one that is closed nothing is to come.
    await database.waitForPendingEvents()
  }

  @Test("the first events of a listener whose data must be read")
  func unread() async throws {
    do {
      let database = try await Database.open(at: directory.path)
      try await database.reference().updateChildValues(
        Dictionary(uniqueKeysWithValues: (0..<5000).map { ("k\($0)", "value \($0)") }))
      try await database.checkpoint()
      try await database.close()
    }
    let database = try await Database.open(at: directory.path)
    let count = Shared<UInt>(0)
    let token = database.reference().listen { snapshot in
      count.withLock { $0 = snapshot.childrenCount }
    }
    await database.waitForPendingEvents()
    #expect(count.value == 5000)
    token.cancel()
    try await database.close()
  }

  @Test("a queue that stands still is waited for until the task is cancelled")
  func cancelled() async throws {
    let database = Database.inMemory()
    let queue = DispatchQueue(label: "suspended")
    queue.suspend()
    database.callbackQueue = queue
    let waiting = Task { await database.waitForPendingEvents() }
    waiting.cancel()
    await waiting.value
    queue.resume()
  }

  @Test("blocks on actors are waited for")
  @MainActor func actors() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("a")
    var seen: [Int] = []
    let token = ref.listen { snapshot in
      MainActor.assumeIsolated { seen.append(snapshot.int ?? 0) }
    }
    try await ref.setValue(7)
    await database.waitForPendingEvents()
    #expect(seen == [0, 7])
    token.cancel()
  }
}
