import DendroTesting
import Foundation
import Synchronization
import Testing

@testable import Dendro
@testable import DendroEngine

/// A database that follows another process's writer, for which a second database on the same disk stands here.
@Suite("Following a writer, by the API")
struct FollowingTests {
  private let disk = SimulatedDisk(seed: 1)

  private func open(
    following: Bool, _ loading: DatabaseOptions.Loading = .onDemand
  ) throws -> Database {
    var options = DatabaseOptions()
    options.loading = loading
    options.followInterval = .milliseconds(1)
    return try Database.open(
      at: "/db", options: options, environment: disk.environment,
      mode: following ? .following : .readWrite)
  }

  @Test(
    "listeners, sequences, queries and changes see what the writer writes",
    arguments: [DatabaseOptions.Loading.onDemand, .whole])
  func sees(loading: DatabaseOptions.Loading) async throws {
    let writer = try open(following: false)
    let source = writer.reference()
    try await source.child("list").setValue(["a": 1, "b": 2])
    try await writer.checkpoint()
    let follower = try open(following: true, loading)
    let list = follower.reference(withPath: "list")
    #expect(try await list.getData().value as? [String: Int] == ["a": 1, "b": 2])

    // Each sequence has its first state before the writer goes on.
    var values = list.snapshots.makeAsyncIterator()
    var events = list.queryOrderedByValue().queryLimited(toLast: 1).childEvents()
      .makeAsyncIterator()
    var changes = follower.changes(since: 1).makeAsyncIterator()
    #expect(try await values.next()?.childrenCount == 2)
    #expect(try await events.next()?.snapshot.key == "b")

    try await source.child("list/c").setValue(3)
    #expect(try await values.next()?.childrenCount == 3)
    let first = try await events.next()
    let second = try await events.next()
    #expect(first?.type == .childRemoved && first?.snapshot.key == "b")
    #expect(second?.type == .childAdded && second?.snapshot.key == "c")

    try await source.child("list/a").removeValue()
    #expect(try await values.next()?.value as? [String: Int] == ["b": 2, "c": 3])
    try await writer.close()
    let (third, fourth) = (try await changes.next(), try await changes.next())
    #expect(third?.lsn == 2 && third?.path == "/list/c")
    #expect(fourth?.lsn == 3 && fourth?.path == "/list/a")
    let past = try await list.snapshot(at: 2)
    #expect(past.childrenCount == 3)
    try await follower.close()
    #expect(try await changes.next() == nil)
    #expect(try await values.next() == nil)
  }

  @Test("writes and transactions are refused as in a database that is open for reading only")
  func refused() async throws {
    try await open(following: false).close()
    let follower = try open(following: true)
    let place = follower.reference(withPath: "a")
    let refused = { (error: any Error) in (error as? DatabaseError)?.code == .readOnly }
    await #expect { try await place.setValue(1) } throws: { refused($0) }
    await #expect { try await place.updateChildValues(["b": 1]) } throws: { refused($0) }
    await #expect { try await place.removeValue() } throws: { refused($0) }
    await #expect {
      try await place.runTransactionBlock { .success(withValue: $0) }
    } throws: {
      refused($0)
    }
    await #expect { try await follower.checkpoint() } throws: { refused($0) }
    try await follower.close()
  }

  @Test("if the directory disappears, reads, listeners and sequences get the error")
  func disappears() async throws {
    let writer = try open(following: false)
    try await writer.reference(withPath: "a").setValue(1)
    try await writer.close()
    let follower = try open(following: true)
    let place = follower.reference(withPath: "a")
    var values = place.snapshots.makeAsyncIterator()
    #expect(try await values.next()?.value as? Int == 1)
    var changes = follower.changes(since: 1).makeAsyncIterator()
    let (cancels, continuation) = AsyncStream.makeStream(of: DatabaseError.Code?.self)
    place.observe(
      .value, with: { _ in },
      withCancel: { continuation.yield(($0 as? DatabaseError)?.code) })
    let kept = try await place.getData()

    for name in try disk.list("/db") { try disk.remove("/db/" + name) }
    try disk.remove("/db")
    let gone = { (error: any Error) in (error as? DatabaseError)?.code == .notFound }
    await #expect { try await values.next() } throws: { gone($0) }
    #expect(try await values.next() == nil)
    await #expect { try await changes.next() } throws: { gone($0) }
    for await code in cancels {
      #expect(code == .notFound)
      break
    }
    await #expect { try await place.getData() } throws: { gone($0) }
    #expect { try follower.read { try $0.int(at: "a") } } throws: { gone($0) }
    var later = place.snapshots.makeAsyncIterator()
    await #expect { try await later.next() } throws: { gone($0) }
    #expect(kept.value as? Int == 1)
    try await follower.close()
    await #expect { try await place.getData() } throws: {
      ($0 as? DatabaseError)?.code == .closed
    }
  }

  @Test("a directory without a database cannot be followed")
  func nothingThere() async throws {
    #expect { try open(following: true) } throws: { ($0 as? DatabaseError)?.code == .notFound }
    let folder = FileManager.default.temporaryDirectory.path + "/dendro-none-\(UUID().uuidString)"
    await #expect { try await Database.open(following: folder) } throws: {
      ($0 as? DatabaseError)?.code == .notFound
    }
    #expect(!FileManager.default.fileExists(atPath: folder))
  }

  @Test("a database that is released ends following")
  func released() async throws {
    let writer = try open(following: false)
    try await writer.reference(withPath: "a").setValue(1)
    var follower: Database? = try open(following: true)
    #expect(try await follower?.reference(withPath: "a").getData().value as? Int == 1)
    follower = nil
    for round in 2...6 {
      try await writer.reference(withPath: "a").setValue(round)
      try await writer.checkpoint()
    }
    // Its position keeps no log any more, once its thread has ended.
    while try disk.list("/db").count(where: { $0.hasSuffix(".log") }) > 3 {
      try await writer.reference(withPath: "b").increment(by: 1)
      try await writer.checkpoint()
    }
    try await writer.close()
  }
}
