import Dendro
import DendroServer
import DendroTestSupport
import Synchronization
import Testing

@testable import DendroSync

/// What Firebase's guides say of clients without a network: «Work with data offline» and «Enabling offline capabilities».
@Suite("synced databases: the guides, offline")
struct OfflineGuideTests {
  private let scores = [
    "bruhathkayosaurus": 55, "lambeosaurus": 21, "linhenykus": 80, "pterodactyl": 93,
    "stegosaurus": 5, "triceratops": 22,
  ]

  @Test(
    "a write triggers events before the server has it; the server, other clients and missed events follow with the network"
  )
  func workOffline() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let other = synced(Int(server.port))
      let posts = database.reference(withPath: "posts")
      let (viewer, others) = (Viewer(database), Viewer(other))
      viewer.listen("posts", posts)
      others.listen("posts", other.reference(withPath: "posts"))
      try await eventually { await viewer.take()["posts"]?.isEmpty == false }
      try await eventually { await others.take()["posts"]?.isEmpty == false }

      database.goOffline()
      let isAnswered = Mutex(false)
      posts.child("a").setValue("mine") { _, _ in isAnswered.withLock { $0 = true } }
      await database.waitForPendingEvents()
      #expect(await viewer.take()["posts"]?.map(\.description).last == #"value {"a":"mine"}"#)
      #expect(!isAnswered.withLock { $0 })
      try await other.reference(withPath: "posts/b").setValue("theirs")
      let theirs = try node(#"{"b":"theirs"}"#)
      #expect(try await served.reference(withPath: "posts").getData().node == theirs)

      database.goOnline()
      try await database.waitForPendingWrites()
      let both = try node(#"{"a":"mine","b":"theirs"}"#)
      #expect(try await served.reference(withPath: "posts").getData().node == both)
      try await eventually { await viewer.take()["posts"]?.last == .value(both) }
      try await eventually { await others.take()["posts"]?.last == .value(both) }
      try await database.close()
      try await other.close()
    }
  }

  @Test(
    "what is kept outlives the app: queries begin with it, and writes are sent after the restart")
  func persistence() async throws {
    try await serving { served, server in
      try await served.reference(withPath: "scores").setValue(scores)
      let folder = try TemporaryFolder()
      let path = folder.path + "/db"
      do {
        let database = try synced(Int(server.port), at: path)
        let scoresRef = database.reference(withPath: "scores")
        let seen = Mutex<[String]>([])
        scoresRef.queryOrderedByValue().queryLimited(toLast: 4).observe(.childAdded) { snapshot in
          seen.withLock { $0.append("\(snapshot.key) \(snapshot.value ?? "null")") }
        }
        try await eventually { seen.value.count == 4 }
        try await database.close()
      }
      let database = try synced(Int(server.port), at: path)
      database.goOffline()
      let scoresRef = database.reference(withPath: "scores")
      let two = Mutex<[String]>([])
      let six = Mutex<[String]>([])
      scoresRef.queryOrderedByValue().queryLimited(toLast: 2).observe(.childAdded) { snapshot in
        two.withLock { $0.append(snapshot.key) }
      }
      scoresRef.queryOrderedByValue().queryLimited(toLast: 6).observe(.childAdded) { snapshot in
        six.withLock { $0.append(snapshot.key) }
      }
      await database.waitForPendingEvents()
      // Those of the four that are kept, and no more events until the network is back.
      #expect(two.value == ["linhenykus", "pterodactyl"])
      #expect(
        six.value == ["triceratops", "bruhathkayosaurus", "linhenykus", "pterodactyl"])
      scoresRef.child("stegosaurus").withoutWaiting { $0.setValue(6) }
      try await database.close()

      let again = try synced(Int(server.port), at: path)
      again.goOnline()
      try await again.waitForPendingWrites()
      #expect(try await served.reference(withPath: "scores/stegosaurus").getData().int == 6)
      try await again.close()
    }
  }

  @Test("a location that is kept in step is current without a listener")
  func keptFresh() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let scoresRef = database.reference(withPath: "scores")
      scoresRef.keepSynced(true)
      try await served.reference(withPath: "scores").setValue(scores)
      let all = try await served.reference(withPath: "scores").getData().node
      // What the server has said before comes before its answer.
      try await database.reference(withPath: "last").setValue(true)
      database.goOffline()
      #expect(try await scoresRef.getData().node == all)
      try await database.close()
    }
  }

  @Test("a transaction without a network waits, shows at once, and counts on what is there then")
  func transactions() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let upvotes = database.reference(withPath: "upvotes")
      let viewer = Viewer(database)
      viewer.listen("upvotes", upvotes)
      try await eventually { await viewer.take()["upvotes"]?.isEmpty == false }
      database.goOffline()
      let committed = Mutex<Int?>(nil)
      upvotes.runTransactionBlock({ currentData in
        currentData.value = (currentData.value as? Int ?? 0) + 1
        return .success(withValue: currentData)
      }) { _, isCommitted, snapshot in
        if isCommitted { committed.withLock { $0 = snapshot?.int } }
      }
      let one = try node("1")
      try await eventually { await viewer.take()["upvotes"]?.last == .value(one) }
      try await served.reference(withPath: "upvotes").setValue(10)
      #expect(committed.value == nil)
      database.goOnline()
      try await eventually { committed.value == 11 }
      #expect(try await served.reference(withPath: "upvotes").getData().int == 11)
      try await database.close()
    }
  }

  @Test("presence: the server writes what was registered once the client is gone")
  func presence() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let user = database.reference(withPath: "users/morgan")
      let connection = user.child("connections").childByAutoId()
      let isThere = Mutex(false)
      let connected = database.reference(withPath: ".info/connected")
      connected.observe(.value) { snapshot in
        guard snapshot.value as? Bool ?? false else { return }
        connection.withoutWaiting { connection in
          connection.onDisconnectRemoveValue { _, _ in }
          connection.setValue(true) { _, _ in isThere.withLock { $0 = true } }
        }
        user.child("lastOnline").onDisconnectSetValue(ServerValue.timestamp()) { _, _ in }
      }
      try await eventually { isThere.value }
      let line = database.reference(withPath: "disconnectmessage")
      try await line.onDisconnectSetValue("I disconnected!")
      try await line.cancelDisconnectOperations()
      #expect(
        try await served.reference(withPath: "users/morgan/connections").getData().childrenCount
          == 1)
      database.goOffline()
      try await eventually {
        let morgan = try await served.reference(withPath: "users/morgan").getData()
        return !morgan.hasChild("connections") && morgan["lastOnline"].value is Int
      }
      #expect(!(try await served.reference(withPath: "disconnectmessage").getData().exists()))
      try await database.close()
    }
  }

  @Test("the difference of the clocks is known once the server has greeted")
  func clockSkew() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    let offset = Mutex<Double>(0)
    database.reference(withPath: ".info/serverTimeOffset").observe(.value) { snapshot in
      offset.withLock { $0 = snapshot.value as? Double ?? Double(snapshot.value as? Int ?? 0) }
    }
    #expect(database.reference().childByAutoId().key?.hasPrefix("-Nj") == false)
    try server.accept()
    // The server of the test greets with a time of 2023: years ago, in milliseconds.
    try await eventually { offset.withLock { $0 < -3e10 } }
    // So do the keys of lists: they sort with those of other clients.
    let keys = (0..<3).compactMap { _ in database.reference().childByAutoId().key }
    #expect(keys.count == 3 && keys == keys.sorted() && keys.allSatisfy { $0.hasPrefix("-Nj") })
    try await database.close()
  }
}
