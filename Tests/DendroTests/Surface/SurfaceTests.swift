import Dendro
import Dispatch
import Foundation
import Testing

/// Every public method of Firebase's Swift API, called as programs call it: block, plain and `async`
/// form. That it compiles is most of the test.
@Suite("Firebase's surface")
struct SurfaceTests {
  let database = Database.inMemory()
  var ref: DatabaseReference { database.reference().child("a") }

  @Test("Database")
  func ofDatabases() async throws {
    let one: Database = Database.inMemory()
    one.isPersistenceEnabled = false
    one.persistenceCacheSizeBytes = 20 << 20
    one.callbackQueue = DispatchQueue(label: "blocks")
    one.useEmulator(withHost: "localhost", port: 9000)
    Database.setLoggingEnabled(false)
    let _: String = Database.sdkVersion()
    let _: DatabaseReference = one.reference()
    let _: DatabaseReference = one.reference(withPath: "a/b")
    let _: DatabaseReference = one.reference(fromURL: "http://localhost:9000/a")
    one.purgeOutstandingWrites()
    one.goOffline()
    one.goOnline()
    let _: () -> Database = Database.database
    let _: (String) -> Database = Database.database(url:)
    let _: () -> Void = DatabaseReference.goOffline
    let _: () -> Void = DatabaseReference.goOnline
  }

  @Test("DatabaseQuery: listening and reading")
  func ofQueries() async throws {
    try await ref.setValue(["k": 1])
    plainly {
      let query: DatabaseQuery = ref
      var handles: [DatabaseHandle] = []
      handles.append(query.observe(.value) { (_: DataSnapshot) in })
      handles.append(query.observe(.childAdded, with: { snapshot in _ = snapshot.key }))
      handles.append(
        query.observe(.childMoved, andPreviousSiblingKeyWith: { (_: DataSnapshot, _: String?) in }))
      handles.append(
        query.observe(.childChanged, with: { _ in }, withCancel: { (_: Error) in }))
      handles.append(
        query.observe(.childRemoved, andPreviousSiblingKeyWith: { _, _ in }, withCancel: nil))
      query.observeSingleEvent(of: .value) { _ in }
      query.observeSingleEvent(of: .value, with: { _ in })
      query.observeSingleEvent(of: .value, andPreviousSiblingKeyWith: { _, _ in })
      query.observeSingleEvent(of: .value, with: { _ in }) { error in
        print(error.localizedDescription)
      }
      query.observeSingleEvent(
        of: .value, andPreviousSiblingKeyWith: { _, _ in }, withCancel: { _ in })
      query.getData { error, snapshot in _ = (error, snapshot.value) }
      query.getData(completion: { (_: Error?, _: DataSnapshot?) in })
      for handle in handles { query.removeObserver(withHandle: handle) }
      query.removeAllObservers()
      query.keepSynced(true)
      let _: DatabaseReference = query.ref
    }
    let snapshot: DataSnapshot = try await ref.getData()
    #expect(snapshot.exists())
    let (child, previous) = await ref.observeSingleEventAndPreviousSiblingKey(of: .childAdded)
    #expect(child.key == "k" && previous == nil)
  }

  @Test("DatabaseQuery: parameters")
  func ofParameters() async throws {
    try await ref.setValue(["x": ["s": 1], "y": ["s": 2]])
    let byChild = ref.queryOrdered(byChild: "s")
    let queries: [DatabaseQuery] = [
      ref.queryLimited(toFirst: 1), ref.queryLimited(toLast: 1), byChild, ref.queryOrderedByKey(),
      ref.queryOrderedByValue(), ref.queryOrderedByPriority(),
      byChild.queryStarting(atValue: 1), byChild.queryStarting(atValue: 1, childKey: "x"),
      byChild.queryStarting(afterValue: 1), byChild.queryStarting(afterValue: 1, childKey: "x"),
      byChild.queryEnding(atValue: 2), byChild.queryEnding(atValue: 2, childKey: "y"),
      byChild.queryEnding(beforeValue: 2), byChild.queryEnding(beforeValue: 2, childKey: "y"),
      byChild.queryEqual(toValue: 1), byChild.queryEqual(toValue: 1, childKey: "x"),
    ]
    for query in queries { #expect(try await query.getData().hasChildren()) }
  }

  @Test("DatabaseReference: places and writes")
  func ofReferences() async throws {
    plainly {
      let _: DatabaseReference = ref.child("b").childByAutoId()
      let _: (DatabaseReference?, DatabaseReference, String?, String, Database, String) = (
        ref.parent, ref.root, ref.key, ref.url, ref.database, ref.description()
      )
      ref.setValue(1)
      ref.setValue(1) { (_: Error?, _: DatabaseReference) in }
      ref.setValue(1, withCompletionBlock: { _, _ in })
      ref.setValue(1, andPriority: 2)
      ref.setValue(1, andPriority: 2) { _, _ in }
      ref.setPriority(1)
      ref.setPriority(1) { _, _ in }
      ref.updateChildValues(["b": 1])
      ref.updateChildValues(["b": 1]) { _, _ in }
      ref.removeValue()
      ref.removeValue { _, _ in }
      ref.removeValue(completionBlock: { _, _ in })
    }
    try await ref.setValue(1)
    let same: DatabaseReference = try await ref.setValue(1, andPriority: 2)
    #expect(same == ref)
    try await ref.setPriority(3)
    try await ref.updateChildValues(["b": 1])
    try await ref.removeValue()
    try await ref.setValue(from: 5)
    try plainly { try ref.setValue(from: [1, 2]) { (_: Error?) in } }
  }

  @Test("DatabaseReference: going offline")
  func ofDisconnecting() async throws {
    plainly {
      ref.onDisconnectSetValue(1)
      ref.onDisconnectSetValue(1) { (_: Error?, _: DatabaseReference) in }
      ref.onDisconnectSetValue(1, andPriority: 2)
      ref.onDisconnectSetValue(1, andPriority: 2) { _, _ in }
      ref.onDisconnectUpdateChildValues(["b": 1])
      ref.onDisconnectUpdateChildValues(["b": 1]) { _, _ in }
      ref.onDisconnectRemoveValue()
      ref.onDisconnectRemoveValue { _, _ in }
      ref.cancelDisconnectOperations()
      ref.cancelDisconnectOperations { _, _ in }
    }
    try await ref.onDisconnectSetValue(1)
    try await ref.onDisconnectSetValue(1, andPriority: 2)
    try await ref.onDisconnectUpdateChildValues(["b": 1])
    try await ref.onDisconnectRemoveValue()
    let same: DatabaseReference = try await ref.cancelDisconnectOperations()
    #expect(same == ref)
  }

  @Test("DatabaseReference and MutableData: transactions")
  func ofTransactions() async throws {
    plainly {
      ref.runTransactionBlock { (data: MutableData) -> TransactionResult in
        data.value = ["n": 1]
        data.priority = 1
        let child = data.childData(byAppendingPath: "n")
        let _: (Any?, Any?, String?, UInt) = (
          child.value, child.priority, child.key, data.childrenCount
        )
        for case let child as MutableData in data.children { _ = child.hasChildren() }
        return data.hasChild(atPath: "n") && data.hasChildren()
          ? TransactionResult.success(withValue: data) : TransactionResult.abort()
      }
      ref.runTransactionBlock({ .success(withValue: $0) }) { error, committed, snapshot in
        let _: (Error?, Bool, DataSnapshot?) = (error, committed, snapshot)
      }
      ref.runTransactionBlock(
        { _ in .abort() }, andCompletionBlock: { _, _, _ in }, withLocalEvents: false)
      ref.runTransactionBlock({ _ in .abort() }, andCompletionBlock: nil, withLocalEvents: true)
    }
    let (committed, snapshot) = try await ref.runTransactionBlock { _ in .abort() }
    #expect(!committed && snapshot.childSnapshot(forPath: "n").int == 1)
  }

  @Test("DataSnapshot, ServerValue, ServerTimestamp")
  func ofSnapshots() async throws {
    struct Stamped: Codable, Hashable {
      @ServerTimestamp var at: Date?
    }
    try await ref.setValue(["x": 1, "y": 2], andPriority: "p")
    let snapshot = try await ref.getData()
    let values: (Any?, Any?, Any?, UInt, String, DatabaseReference) = (
      snapshot.value, snapshot.valueInExportFormat(), snapshot.priority, snapshot.childrenCount,
      snapshot.key, snapshot.ref
    )
    #expect(values.3 == 2 && values.4 == "a" && values.5 == ref)
    #expect(snapshot.hasChild("x") && snapshot.hasChildren() && snapshot.exists())
    var count = 0
    for case let child as DataSnapshot in snapshot.children { count += child.value as! Int }
    #expect(count == 3)
    #expect((snapshot.children.allObjects as? [DataSnapshot])?.count == 2)
    #expect(try snapshot.data(as: [String: Int].self) == ["x": 1, "y": 2])
    let server: [[AnyHashable: Any]] = [
      ServerValue.timestamp(), ServerValue.increment(1), ServerValue.increment(1.5),
      ServerValue.increment(NSNumber(value: 2)),
    ]
    #expect(server.count == 4)
    try await ref.setValue(from: Stamped(at: nil))
    #expect(try await ref.getData().data(as: Stamped.self).at != nil)
    let _: (Database.Encoder, Database.Decoder) = (Database.Encoder(), Database.Decoder())
    #expect(
      [.childAdded, .childRemoved, .childChanged, .childMoved, .value].map(
        \DataEventType.rawValue) == [0, 1, 2, 3, 4])
  }
}
