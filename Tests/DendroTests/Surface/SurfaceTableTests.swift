import Dendro
import Dispatch
import Foundation
import Testing

/// Firebase's Swift API as a list of names: each is spelled out once here, so that it compiles, and has a
/// verdict in the article on coming from Firebase.
///
/// `SurfaceTests` calls the methods, their `async` forms among them.
@Suite("Firebase's names")
struct SurfaceTableTests {
  /// The members of a type, and where the article describes them.
  struct Members: Sendable, CustomTestStringConvertible {
    let type: String
    let heading: String
    /// What the members stand behind in `spelled(…)`.
    let receivers: [String]
    let names: [String]

    init(_ type: String, under heading: String, _ receivers: String, _ names: String) {
      self.type = type
      self.heading = heading
      self.receivers = receivers.split(separator: " ").map(String.init)
      self.names = names.split(whereSeparator: \.isWhitespace).map(String.init)
    }

    var testDescription: String { type }
  }

  static let members = [
    Members(
      "Database", under: "Database", "Database database",
      """
      database() database(url:) database(app:) database(app:url:) app reference()
      reference(withPath:) reference(fromURL:) purgeOutstandingWrites() goOffline() goOnline()
      isPersistenceEnabled persistenceCacheSizeBytes callbackQueue setLoggingEnabled(_:)
      sdkVersion() useEmulator(withHost:port:)
      """),
    Members(
      "DatabaseReference", under: "Locations and writes", "DatabaseReference ref",
      """
      child(_:) childByAutoId() parent root key url database description()
      setValue(_:) setValue(_:withCompletionBlock:) setValue(_:andPriority:)
      setValue(_:andPriority:withCompletionBlock:) removeValue() removeValue(completionBlock:)
      setPriority(_:) setPriority(_:withCompletionBlock:) updateChildValues(_:)
      updateChildValues(_:withCompletionBlock:) setValue(from:encoder:completion:)
      onDisconnectSetValue(_:) onDisconnectSetValue(_:withCompletionBlock:)
      onDisconnectSetValue(_:andPriority:)
      onDisconnectSetValue(_:andPriority:withCompletionBlock:)
      onDisconnectRemoveValue() onDisconnectRemoveValue(completionBlock:)
      onDisconnectUpdateChildValues(_:) onDisconnectUpdateChildValues(_:withCompletionBlock:)
      cancelDisconnectOperations() cancelDisconnectOperations(completionBlock:)
      runTransactionBlock(_:) runTransactionBlock(_:andCompletionBlock:)
      runTransactionBlock(_:andCompletionBlock:withLocalEvents:) goOffline() goOnline()
      """),
    Members(
      "DatabaseQuery", under: "Reading and listening", "query",
      """
      observe(_:with:) observe(_:andPreviousSiblingKeyWith:) observe(_:with:withCancel:)
      observe(_:andPreviousSiblingKeyWith:withCancel:)
      observeSingleEvent(of:with:) observeSingleEvent(of:andPreviousSiblingKeyWith:)
      observeSingleEvent(of:with:withCancel:)
      observeSingleEvent(of:andPreviousSiblingKeyWith:withCancel:)
      observeSingleEventAndPreviousSiblingKey(of:) getData(completion:) getData()
      removeObserver(withHandle:) removeAllObservers() keepSynced(_:)
      queryLimited(toFirst:) queryLimited(toLast:) queryOrdered(byChild:) queryOrderedByKey()
      queryOrderedByValue() queryOrderedByPriority()
      queryStarting(atValue:) queryStarting(atValue:childKey:)
      queryStarting(afterValue:) queryStarting(afterValue:childKey:)
      queryEnding(atValue:) queryEnding(atValue:childKey:)
      queryEnding(beforeValue:) queryEnding(beforeValue:childKey:)
      queryEqual(toValue:) queryEqual(toValue:childKey:) ref
      """),
    Members(
      "DataSnapshot", under: "Snapshots", "snapshot",
      """
      childSnapshot(forPath:) hasChild(_:) hasChildren() exists() valueInExportFormat() value
      childrenCount children priority key ref data(as:decoder:)
      """),
    Members(
      "MutableData", under: "Transaction data", "data",
      """
      value priority childrenCount children key hasChildren() hasChild(atPath:)
      childData(byAppendingPath:)
      """),
    Members(
      "TransactionResult", under: "Transaction data", "TransactionResult",
      "success(withValue:) abort()"),
    Members(
      "ServerValue", under: "Server values and types", "ServerValue", "timestamp() increment(_:)"),
    Members(
      "types", under: "Server values and types", "DataEventType",
      "childAdded childRemoved childChanged childMoved value"),
    Members(
      "Database.Encoder", under: "Codable", "encoder",
      """
      encode(_:) dateEncodingStrategy dataEncodingStrategy nonConformingFloatEncodingStrategy
      keyEncodingStrategy passthroughTypeResolver userInfo
      """),
    Members(
      "Database.Decoder", under: "Codable", "decoder",
      """
      decode(_:from:) dateDecodingStrategy dataDecodingStrategy nonConformingFloatDecodingStrategy
      keyDecodingStrategy passthroughTypeResolver userInfo
      """),
    Members("ServerTimestamp", under: "Codable", "ServerTimestamp", "init(wrappedValue:)"),
  ]

  // MARK: The spelling

  /// Never called: that it compiles is the test.
  private func spelled(_ database: Database) {
    _ = { Database.database() }
    _ = Database.database(url:)
    _ = { database.reference() }
    _ = database.reference(withPath:)
    _ = database.reference(fromURL:)
    _ = { database.purgeOutstandingWrites() }
    _ = { database.goOffline() }
    _ = { database.goOnline() }
    database.isPersistenceEnabled = false
    database.persistenceCacheSizeBytes = 10 << 20
    database.callbackQueue = DispatchQueue.main
    _ = Database.setLoggingEnabled(_:)
    _ = { Database.sdkVersion() }
    _ = database.useEmulator(withHost:port:)
  }

  private func spelled(_ ref: DatabaseReference) throws {
    _ = ref.child(_:)
    _ = { ref.childByAutoId() }
    let _: (DatabaseReference?, DatabaseReference, String?, String, Database) = (
      ref.parent, ref.root, ref.key, ref.url, ref.database
    )
    _ = { ref.description() }
    let _: (Any?) -> Void = ref.setValue(_:)
    let _: (Any?, @escaping @Sendable (Error?, DatabaseReference) -> Void) -> Void =
      ref.setValue(_:withCompletionBlock:)
    let _: (Any?, Any?) -> Void = ref.setValue(_:andPriority:)
    _ = ref.setValue(_:andPriority:withCompletionBlock:)
    ref.removeValue()
    _ = ref.removeValue(completionBlock:)
    let _: (Any?) -> Void = ref.setPriority(_:)
    _ = ref.setPriority(_:withCompletionBlock:)
    let _: ([AnyHashable: Any]) -> Void = ref.updateChildValues(_:)
    _ = ref.updateChildValues(_:withCompletionBlock:)
    let _: (Int, Database.Encoder, (@Sendable (Error?) -> Void)?) throws -> Void =
      ref.setValue(from:encoder:completion:)
    let _: (Any?) -> Void = ref.onDisconnectSetValue(_:)
    _ = ref.onDisconnectSetValue(_:withCompletionBlock:)
    let _: (Any?, Any?) -> Void = ref.onDisconnectSetValue(_:andPriority:)
    _ = ref.onDisconnectSetValue(_:andPriority:withCompletionBlock:)
    ref.onDisconnectRemoveValue()
    _ = ref.onDisconnectRemoveValue(completionBlock:)
    let _: ([AnyHashable: Any]) -> Void = ref.onDisconnectUpdateChildValues(_:)
    _ = ref.onDisconnectUpdateChildValues(_:withCompletionBlock:)
    ref.cancelDisconnectOperations()
    _ = ref.cancelDisconnectOperations(completionBlock:)
    let _: (@escaping @Sendable (MutableData) -> TransactionResult) -> Void =
      ref.runTransactionBlock(_:)
    let _:
      (
        @escaping @Sendable (MutableData) -> TransactionResult,
        @escaping @Sendable (Error?, Bool, DataSnapshot?) -> Void
      ) -> Void = ref.runTransactionBlock(_:andCompletionBlock:)
    _ = ref.runTransactionBlock(_:andCompletionBlock:withLocalEvents:)
    // Not called: that would take the databases of other tests offline.
    _ = { DatabaseReference.goOffline() }
    _ = { DatabaseReference.goOnline() }
  }

  private func spelled(_ query: DatabaseQuery) async throws {
    _ = query.observe(_:with:)
    _ = query.observe(_:andPreviousSiblingKeyWith:)
    _ = query.observe(_:with:withCancel:)
    _ = query.observe(_:andPreviousSiblingKeyWith:withCancel:)
    _ = query.observeSingleEvent(of:with:)
    _ = query.observeSingleEvent(of:andPreviousSiblingKeyWith:)
    _ = query.observeSingleEvent(of:with:withCancel:)
    _ = query.observeSingleEvent(of:andPreviousSiblingKeyWith:withCancel:)
    _ = query.observeSingleEventAndPreviousSiblingKey(of:)
    _ = query.getData(completion:)
    _ = try await query.getData()
    _ = query.removeObserver(withHandle:)
    query.removeAllObservers()
    _ = query.keepSynced(_:)
    _ = query.queryLimited(toFirst:)
    _ = query.queryLimited(toLast:)
    _ = query.queryOrdered(byChild:)
    let _: [DatabaseQuery] = [
      query.queryOrderedByKey(), query.queryOrderedByValue(), query.queryOrderedByPriority(),
    ]
    _ = query.queryStarting(atValue:)
    _ = query.queryStarting(atValue:childKey:)
    _ = query.queryStarting(afterValue:)
    _ = query.queryStarting(afterValue:childKey:)
    _ = query.queryEnding(atValue:)
    _ = query.queryEnding(atValue:childKey:)
    _ = query.queryEnding(beforeValue:)
    _ = query.queryEnding(beforeValue:childKey:)
    _ = query.queryEqual(toValue:)
    _ = query.queryEqual(toValue:childKey:)
    _ = query.ref
  }

  private func spelled(_ snapshot: DataSnapshot, _ data: MutableData) throws {
    _ = snapshot.childSnapshot(forPath:)
    _ = snapshot.hasChild(_:)
    let _: (Bool, Bool) = (snapshot.hasChildren(), snapshot.exists())
    let _: (Any?, Any?, Any?) = (
      snapshot.valueInExportFormat(), snapshot.value, snapshot.priority
    )
    let _: (UInt, NSEnumerator, String, DatabaseReference) = (
      snapshot.childrenCount, snapshot.children, snapshot.key, snapshot.ref
    )
    let _: (Int.Type, Database.Decoder) throws -> Int = snapshot.data(as:decoder:)

    data.value = data.value as Any?
    data.priority = data.priority as Any?
    let _: (UInt, NSEnumerator, String?) = (data.childrenCount, data.children, data.key)
    let _: Bool = data.hasChildren()
    _ = data.hasChild(atPath:)
    _ = data.childData(byAppendingPath:)
    _ = TransactionResult.success(withValue:)
    let _: TransactionResult = TransactionResult.abort()
  }

  private func spelled(_ encoder: Database.Encoder, _ decoder: Database.Decoder) {
    let _: [AnyHashable: Any] = ServerValue.timestamp()
    let _: (NSNumber) -> [AnyHashable: Any] = ServerValue.increment(_:)
    let _: (Date?) -> ServerTimestamp = ServerTimestamp.init(wrappedValue:)
    let _: [DataEventType] = [
      DataEventType.childAdded, DataEventType.childRemoved, DataEventType.childChanged,
      DataEventType.childMoved, DataEventType.value,
    ]
    let _: DatabaseHandle = UInt(0)

    let _: (Int) throws -> Any = encoder.encode(_:)
    encoder.dateEncodingStrategy = .deferredToDate
    encoder.dateEncodingStrategy = .secondsSince1970
    encoder.dateEncodingStrategy = .millisecondsSince1970
    encoder.dateEncodingStrategy = .iso8601
    encoder.dateEncodingStrategy = .formatted(DateFormatter())
    encoder.dateEncodingStrategy = .custom { _, _ in }
    encoder.dataEncodingStrategy = .deferredToData
    encoder.dataEncodingStrategy = .base64
    encoder.dataEncodingStrategy = .blob
    encoder.dataEncodingStrategy = .custom { _, _ in }
    encoder.nonConformingFloatEncodingStrategy = .throw
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "+", negativeInfinity: "-", nan: "?")
    encoder.keyEncodingStrategy = .useDefaultKeys
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.keyEncodingStrategy = .custom { $0[0] }
    encoder.passthroughTypeResolver = encoder.passthroughTypeResolver
    encoder.userInfo = [:]

    let _: (Int.Type, Any) throws -> Int = decoder.decode(_:from:)
    decoder.dateDecodingStrategy = .deferredToDate
    decoder.dateDecodingStrategy = .secondsSince1970
    decoder.dateDecodingStrategy = .millisecondsSince1970
    decoder.dateDecodingStrategy = .iso8601
    decoder.dateDecodingStrategy = .formatted(DateFormatter())
    decoder.dateDecodingStrategy = .custom { _ in Date() }
    decoder.dataDecodingStrategy = .deferredToData
    decoder.dataDecodingStrategy = .base64
    decoder.dataDecodingStrategy = .blob
    decoder.dataDecodingStrategy = .custom { _ in Data() }
    decoder.nonConformingFloatDecodingStrategy = .throw
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "+", negativeInfinity: "-", nan: "?")
    decoder.keyDecodingStrategy = .useDefaultKeys
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    decoder.keyDecodingStrategy = .custom { $0[0] }
    decoder.passthroughTypeResolver = decoder.passthroughTypeResolver
    decoder.userInfo = [:]
  }

  // MARK: The article

  private static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The verdict on each name in the tables below a heading: `same`, `better`, `different`, `absent`.
  private static func verdicts(under heading: String) throws -> [(name: String, verdict: String)] {
    let text = try String(
      contentsOf: package.appendingPathComponent(
        "Sources/Dendro/Dendro.docc/ComingFromFirebase.md"), encoding: .utf8)
    let section = text.components(separatedBy: "\n## ").first { $0.hasPrefix(heading + "\n") }
    var verdicts: [(String, String)] = []
    for row in try #require(section).split(separator: "\n") where row.hasPrefix("| ") {
      let cells = row.split(separator: "|", omittingEmptySubsequences: false)
      guard cells.count > 3 else { continue }
      // In the first cell, between single backticks.
      for (index, name) in cells[1].split(separator: "`", omittingEmptySubsequences: false)
        .enumerated() where index % 2 == 1
      {
        verdicts.append((String(name), cells[2].trimmingCharacters(in: .whitespaces)))
      }
    }
    return verdicts
  }

  @Test("each compiles here, and has a verdict in the article", arguments: members)
  func table(_ members: Members) throws {
    let source = try String(contentsOfFile: #filePath, encoding: .utf8)
    let verdicts = try Self.verdicts(under: members.heading)
    for name in members.names {
      let found = verdicts.filter { $0.name == name }.map(\.verdict)
      #expect(!found.isEmpty, "\(members.type).\(name) is not in the article")
      #expect(Set(found).isSubset(of: ["same", "better", "different", "absent"]), "\(name)")
      let isSpelled = members.receivers.contains { receiver in
        source.ranges(of: "\(receiver).\(name)").contains { range in
          let before = source[..<range.lowerBound].last
          let after = source[range.upperBound...].first
          return before?.isLetter != true && before != "." && after?.isLetter != true
            && (name.hasSuffix(")") || after != "(")
        }
      }
      #expect(isSpelled == !found.contains("absent"), "\(members.type).\(name)")
    }
  }

  @Test("the article names nothing of Firebase's that is not in the list")
  func nothingElse() throws {
    for (heading, members) in Dictionary(grouping: Self.members, by: \.heading) {
      let known = Set(members.flatMap(\.names) + ["Database.Encoder", "Database.Decoder", ""])
      for (name, _) in try Self.verdicts(under: heading) {
        #expect(known.contains(name), "\(heading): \(name)")
      }
    }
  }
}
