import Dendro
import Testing

extension ConnectionTests {
  @Test("what .info says, read in every way")
  func info() async throws {
    let info = database.reference(withPath: ".info")
    let connected = database.reference(withPath: "/.info//connected/")
    #expect(connected == info.child("connected"))
    #expect(connected.key == "connected" && connected.parent == info && info.parent == root)
    func read() async throws -> String {
      let completion = await withCheckedContinuation { continuation in
        info.getData { error, snapshot in
          #expect(error == nil)
          continuation.resume(returning: shown(snapshot.value))
        }
      }
      #expect(shown(try await info.getData().value) == completion)
      #expect(
        shown(await info.observeSingleEventAndPreviousSiblingKey(of: .value).0.value) == completion)
      let connected = shown(try await connected.getData().value)
      #expect(
        shown(try await database.reference(withPath: ".info/serverTimeOffset").getData().value)
          == "0")
      return "\(connected) \(completion)"
    }
    #expect(try await read() == "true {connected:true,serverTimeOffset:0}")
    database.goOffline()
    #expect(try await read() == "false {connected:false,serverTimeOffset:0}")
    database.goOnline()
    #expect(try await read() == "true {connected:true,serverTimeOffset:0}")
    #expect(try await database.reference(withPath: ".info/other").getData().exists() == false)
    #expect(
      try await info.queryOrderedByKey().queryLimited(toFirst: 1).getData().childrenCount == 1)
  }

  @Test("listeners hear of going offline and online, and of nothing else")
  func listening() async throws {
    let recorder = Recorder(database)
    let info = database.reference(withPath: ".info")
    let handles = recorder.listen("c", info.child("connected"), [.value])
    recorder.listen("i", info, [.childAdded, .childChanged])
    recorder.listen("q", info.queryOrderedByKey().queryLimited(toFirst: 1), [.value])
    recorder.listen("root", root, [.value])
    #expect(
      await recorder.take() == [
        "c:value true", "i:added connected=true after nil",
        "i:added serverTimeOffset=0 after connected", "q:value {connected:true}",
        "root:value null",
      ])
    // Writes at and above do not touch it.
    try await root.setValue(["a": 1])
    try await root.setValue(nil)
    #expect(await recorder.take() == ["root:value {a:1}", "root:value null"])
    database.goOnline()
    #expect(await recorder.take() == [])
    database.goOffline()
    #expect(
      await recorder.take() == [
        "c:value false", "i:changed connected=false after nil", "q:value {connected:false}",
      ])
    database.goOffline()
    #expect(await recorder.take() == [])
    info.child("connected").removeObserver(withHandle: handles[0])
    info.queryOrderedByKey().queryLimited(toFirst: 1).removeAllObservers()
    database.goOnline()
    #expect(await recorder.take() == ["i:changed connected=true after nil"])
    info.removeAllObservers()
    database.goOffline()
    #expect(await recorder.take() == [])
  }

  @Test("sequences of it, which no write to the data wakes")
  func sequences() async throws {
    let connected = database.reference(withPath: ".info/connected")
    var values = connected.snapshots.makeAsyncIterator()
    var events = database.reference(withPath: ".info").childEvents().makeAsyncIterator()
    #expect(try await values.next()?.bool == true)
    #expect(try await events.next()?.snapshot.key == "connected")
    #expect(try await events.next()?.snapshot.key == "serverTimeOffset")
    try await root.setValue(1)
    database.goOffline()
    #expect(try await values.next()?.bool == false)
    let change = try await events.next()
    #expect(change?.type == .childChanged && change?.snapshot.bool == false)
    try await database.close()
    #expect(try await values.next() == nil)
    #expect(try await events.next() == nil)
  }

  @Test("listeners hear that they are offline before they hear what was registered for it")
  func order() async throws {
    let recorder = Recorder(database)
    recorder.listen("c", database.reference(withPath: ".info/connected"), [.value])
    recorder.listen("r", root, [.value])
    try await root.onDisconnectSetValue("left")
    _ = await recorder.take()
    database.goOffline()
    #expect(await recorder.take() == ["c:value false", "r:value \"left\""])
  }

  @Test("nothing below .info can be written, in any form")
  func notWritable() async throws {
    for path in [".info", ".info/connected", ".info/new/place"] {
      let ref = database.reference(withPath: path)
      let name = "WritablePathValidation"
      #expect(await failure { try await ref.setValue(1) }?.name == name)
      #expect(await failure { try await ref.setValue(nil) }?.name == name)
      #expect(await failure { try await ref.setValue(1, andPriority: 1) }?.name == name)
      #expect(await failure { try await ref.setValue(from: 5) }?.name == name)
      #expect(await failure { try await ref.removeValue() }?.name == name)
      #expect(await failure { try await ref.setPriority(1) }?.name == name)
      #expect(await failure { try await ref.updateChildValues(["a": 1]) }?.name == name)
      #expect(await failure { try await ref.onDisconnectSetValue(1) }?.name == name)
      #expect(await failure { try await ref.childByAutoId().setValue(1) }?.name == name)
      #expect(
        await failure {
          try await ref.runTransactionBlock { _ in
            Issue.record("the block ran")
            return .abort()
          }
        }?.name == name)
      #expect(await failure { try await ref.transaction { $0.value = 1 } }?.name == name)
      let error = await withCheckedContinuation { continuation in
        ref.runTransactionBlock({ .success(withValue: $0) }) { error, _, _ in
          continuation.resume(returning: error as? DatabaseError)
        }
      }
      #expect(error?.name == name)
    }
    #expect(await failure { try await root.child(".info").setValue(1) }?.code == .invalidPath)
    #expect(await failure { try await root.updateChildValues([".info/x": 1]) } != nil)
    #expect(try await root.getData().exists() == false)
  }

  @Test(
    "what calls make of the connection, and of what was registered for its end",
    arguments: [
      ("", true, false), ("online", true, false), ("offline", false, true),
      ("offline online", true, true), ("offline offline", false, true), ("purge", true, false),
      ("cancel offline", false, false), ("online offline", false, true),
    ])
  func connection(calls: String, isConnected: Bool, isWritten: Bool) async throws {
    try await root.child("left").onDisconnectSetValue(true)
    for call in calls.split(separator: " ") {
      switch call {
      case "online": database.goOnline()
      case "offline": database.goOffline()
      case "cancel": try await root.cancelDisconnectOperations()
      default: database.purgeOutstandingWrites()
      }
    }
    let connected = database.reference(withPath: ".info/connected")
    #expect(try await connected.getData().bool == isConnected)
    #expect(try await root.child("left").getData().exists() == isWritten)
    // In any state, writes and reads are those of a database that is open.
    try await root.child("more").setValue(1)
    #expect(try await root.child("more").getData().int == 1)
  }

  /// In a process of its own, since it takes the databases of other tests offline too.
  @Test("all databases of the process at once")
  func all() async {
    await #expect(processExitsWith: .success) {
      let databases = [Database.inMemory(), Database.inMemory()]
      let closed = Database.inMemory()
      try await closed.close()
      for database in databases {
        try await database.reference().onDisconnectSetValue("left")
      }
      plainly { DatabaseReference.goOffline() }
      for database in databases {
        #expect(try await database.reference().getData().string == "left")
        #expect(
          try await database.reference(withPath: ".info/connected").getData().bool == false)
      }
      plainly { DatabaseReference.goOnline() }
      for database in databases {
        #expect(
          try await database.reference(withPath: ".info/connected").getData().bool == true)
      }
    }
  }

  @Test("closing ends its listeners like all others")
  func closing() async throws {
    let recorder = Recorder(database)
    let connected = database.reference(withPath: ".info/connected")
    connected.observe(
      .value, with: { recorder.note("\(shown($0.value))") },
      withCancel: { recorder.note("\(($0 as? DatabaseError)?.name ?? "")") })
    try await database.close()
    #expect(await recorder.take() == ["true", "DatabaseClosed"])
    #expect(await failure { _ = try await connected.getData() }?.code == .closed)
  }
}
