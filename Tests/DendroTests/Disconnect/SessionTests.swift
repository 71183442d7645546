import Dendro
import DendroStorage
import DendroTesting
import Testing

@Suite("Sessions")
struct SessionTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  @Test("a session writes its own operations when it ends, as one write")
  func ends() async throws {
    let ada = database.makeSession()
    let bob = database.makeSession()
    try ada.onDisconnectSetValue("offline", at: root.child("status/ada"))
    try ada.onDisconnectSetValue(1, andPriority: 2, at: root.child("p"))
    try ada.onDisconnectUpdateChildValues(["a": 1, "b/c": 2], at: root.child("more"))
    try ada.onDisconnectSetValue(["x": 1, "y": 2], at: root.child("parts"))
    try ada.cancelDisconnectOperations(at: root.child("parts/x"))
    try bob.onDisconnectRemoveValue(at: root.child("status/bob"))
    try await root.child("status").setValue(["ada": "online", "bob": "online"])
    let before = database.statistics.lastWrite
    try await ada.end()
    #expect(database.statistics.lastWrite == before + 1)
    #expect(try await root.child("status/ada").getData().string == "offline")
    #expect(try await root.child("status/bob").getData().string == "online")
    #expect(try await root.child("more/b/c").getData().int == 2)
    #expect(try await root.child("p").getData().priority as? Int == 2)
    #expect(try await root.child("parts").getData().childrenCount == 1)
    try await bob.end()
    #expect(try await root.child("status/bob").getData().exists() == false)
    try await ada.end()
    #expect(database.statistics.lastWrite == before + 2)
  }

  @Test("a session ends with its last reference")
  func released() async throws {
    do {
      let session = database.makeSession()
      try session.onDisconnectSetValue(ServerValue.increment(2), at: root.child("n"))
      try session.onDisconnectSetValue(true, at: root.child("gone"))
    }
    #expect(try await root.child("gone").getData().bool == true)
    #expect(try await root.child("n").getData().int == 2)
  }

  @Test("closing the database ends its sessions, before its own last write")
  func closed() async throws {
    let disk = SimulatedDisk()
    let first = try Database.open(at: "/db", on: disk)
    let session = first.makeSession()
    let location = first.reference(withPath: "a")
    try session.onDisconnectSetValue("session", at: location)
    try session.onDisconnectSetValue("session", at: first.reference(withPath: "b"))
    try await location.onDisconnectSetValue("database")
    try await first.close()
    #expect(throws: DatabaseError.self) {
      try session.onDisconnectSetValue(1, at: location)
    }
    try await session.end()
    let again = try Database.open(at: "/db", on: disk)
    #expect(try await again.reference(withPath: "a").getData().string == "database")
    #expect(try await again.reference(withPath: "b").getData().string == "session")
    try await again.close()
  }

  @Test("each session has a connection of its own")
  func connected() async throws {
    let ada = database.makeSession()
    let bob = database.makeSession()
    try ada.onDisconnectSetValue("left", at: root.child("ada"))
    var values = ada.connectedValues.makeAsyncIterator()
    #expect(await values.next() == true)
    ada.goOffline()
    #expect(await values.next() == false)
    #expect(!ada.isConnected && bob.isConnected)
    #expect(try await root.child("ada").getData().string == "left")
    #expect(try await database.reference(withPath: ".info/connected").getData().bool == true)
    ada.goOnline()
    #expect(await values.next() == true)
    try await ada.end()
    #expect(await values.next() == false)
    #expect(await values.next() == nil)
    #expect(!ada.isConnected)
    var late = ada.connectedValues.makeAsyncIterator()
    #expect(await late.next() == false)
    #expect(await late.next() == nil)
  }

  @Test("what cannot be written is refused when it is registered")
  func refused() async throws {
    let session = database.makeSession()
    #expect(throws: DatabaseError.self) {
      try session.onDisconnectSetValue(["a.b": 1], at: root.child("x"))
    }
    #expect(throws: DatabaseError.self) {
      try session.onDisconnectSetValue(1, at: database.reference(withPath: "a.b"))
    }
    #expect(throws: DatabaseError.self) {
      try session.onDisconnectSetValue(1, at: database.reference(withPath: ".info/connected"))
    }
    let other = Database.inMemory()
    #expect(throws: DatabaseError.self) {
      try session.onDisconnectSetValue(1, at: other.reference(withPath: "x"))
    }
    try await session.end()
    #expect(throws: DatabaseError.self) { try session.onDisconnectSetValue(1, at: root.child("x")) }
    #expect(throws: DatabaseError.self) {
      try session.cancelDisconnectOperations(at: root.child("x"))
    }
    #expect(try await root.child("x").getData().exists() == false)
    try await other.close()
  }
}
