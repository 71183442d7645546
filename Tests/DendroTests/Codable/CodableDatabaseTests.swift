import Dendro
import Foundation
import Testing

@Suite("Codable and the database")
struct CodableDatabaseTests {
  struct Post: Codable, Equatable {
    var title: String
    var stars: Int
    var tags: [String]
    @ServerTimestamp var postedAt: Date?
  }

  @Test("set from a value, read as one, also after reopening")
  func reopened() async throws {
    let directory = TemporaryDirectory()
    var post = Post(title: "Rings", stars: 3, tags: ["wood"], postedAt: nil)
    let before = Date()
    do {
      let database = try await Database.open(at: directory.path)
      let ref = database.reference().child("posts").childByAutoId()
      try await ref.setValue(from: post)
      let snapshot = try await ref.getData()
      let stamp: Date = try #require(try snapshot.data(as: Post.self).postedAt)
      post.postedAt = stamp
      #expect(try snapshot.data(as: Post.self) == post)
      try await database.close()
      #expect(try snapshot.data(as: Post.self) == post)
    }
    let database = try await Database.open(at: directory.path)
    let posts = try await database.reference().child("posts").getData(as: [String: Post].self)
    #expect(Array(posts.values) == [post])
    #expect(try #require(post.postedAt).timeIntervalSince(before) > -1)
    for child in try await database.reference().child("posts").getData() {
      #expect(try child.data(as: Post.self) == post)
      #expect(try child["title"].data(as: String.self) == "Rings")
    }
    try await database.close()
  }

  @Test("three forms of completion")
  func completions() async throws {
    let database = Database.inMemory()
    let ref = database.reference()
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      do {
        try ref.setValue(from: ["a": 1]) { error in
          #expect(error == nil)
          continuation.resume()
        }
      } catch {
        continuation.resume(throwing: error)
      }
    }
    try plainly { try ref.child("b").setValue(from: 2) }
    #expect(try await ref.getData(as: [String: Int].self) == ["a": 1, "b": 2])
    let same = try await ref.child("b").setValue(from: Int?.none)
    #expect(same == ref.child("b"))
    #expect(try await ref.getData(as: [String: Int].self) == ["a": 1])
  }

  @Test("a bad location and a closed database are for the completion, a bad value is thrown")
  func failures() async throws {
    let reported = Shared<[DatabaseError]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in reported.withLock { $0.append(error) } }
    let database = Database.inMemory(options: options)
    let ref = database.reference()
    func completion(_ ref: DatabaseReference) async throws -> DatabaseError? {
      try await withCheckedThrowingContinuation { continuation in
        do {
          try ref.setValue(from: 1) { continuation.resume(returning: $0 as? DatabaseError) }
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
    #expect(try await completion(ref.child("a.b"))?.code == .invalidPath)
    #expect(await failure { try await ref.child("a.b").setValue(from: 1) }?.code == .invalidPath)
    #expect(
      await failure { _ = try await ref.child("a.b").getData(as: Int.self) }?.code == .invalidPath)
    plainly { try? ref.child("c#").setValue(from: 1) }
    await settle(database)
    #expect(reported.withLock { $0.map(\.code) } == [.invalidPath])
    let called = Shared(false)
    #expect(
      place(thrown { try ref.setValue(from: Double.nan) { _ in called.withLock { $0 = true } } })
        == "invalidValue ")
    let refused = thrown {
      try ref.setValue(from: ["a#": 1]) { _ in called.withLock { $0 = true } }
    }
    #expect((refused as? DatabaseError)?.code == .invalidData)
    await settle(database)
    #expect(!called.value)
    try await database.close()
    #expect(try await completion(ref)?.code == .closed)
    #expect(await failure { try await ref.setValue(from: 1) }?.code == .closed)
  }

  // MARK: Server values

  @Test("a date is its milliseconds, nil the time of the write")
  func timestamps() async throws {
    let date = Date(timeIntervalSince1970: 1_700_000_000.25)
    var post = Post(title: "x", stars: 0, tags: [], postedAt: date)
    #expect(try await stored(post) == "{postedAt:1700000000250,stars:0,title:\"x\"}")
    #expect(
      shown(try Database.Encoder().encode(ServerTimestamp(wrappedValue: date))) == "1700000000250")
    let ref = Database.inMemory().reference()
    try await ref.setValue(from: post)
    #expect(try await ref.getData(as: Post.self).postedAt == date)
    post.postedAt = nil
    #expect(
      shown(try Database.Encoder().encode(post))
        == "{postedAt:{.sv:\"timestamp\"},stars:0,tags:[],title:\"x\"}")
    let before = Int(Date().timeIntervalSince1970 * 1000)
    try await ref.setValue(from: [post, post])
    let posts = try await ref.getData()
    let time = try #require(posts["0/postedAt"].int)
    #expect(time >= before && time <= before + 600_000)
    #expect(posts["1/postedAt"].int == time, "one write, one time")
    // Whatever the strategies say.
    let encoder = encoder {
      $0.dateEncodingStrategy = .iso8601
      $0.keyEncodingStrategy = .convertToSnakeCase
    }
    post.postedAt = date
    #expect(
      try await stored(post, encoder) == "{posted_at:1700000000250,stars:0,title:\"x\"}")
    post.postedAt = nil
    try await ref.setValue(from: post, encoder: encoder)
    #expect(try await ref.getData()["posted_at"].int != nil)
    // Missing, it is nil.
    try await ref.setValue(["title": "x", "stars": 1])
    #expect(try await ref.getData(as: Post.self).postedAt == nil)
  }

  @Test(
    "milliseconds are truncated",
    arguments: [
      (0.0, 0), (0.0019, 1), (-0.0019, -1), (1_700_000_000.999_999, 1_700_000_000_999),
      (-62_135_596_800, -62_135_596_800_000),
    ] as [(Double, Int)])
  func truncation(_ seconds: Double, _ milliseconds: Int) throws {
    let stamp = ServerTimestamp(wrappedValue: Date(timeIntervalSince1970: seconds))
    #expect(try Database.Encoder().encode(stamp) as? Int == milliseconds)
    #expect(
      try Database.Decoder().decode(ServerTimestamp.self, from: milliseconds).wrappedValue
        == Date(timeIntervalSince1970: Double(milliseconds) / 1000))
  }

  @Test("dates that have no milliseconds", arguments: [Double.nan, .infinity, 1e30, -1e30])
  func noMilliseconds(_ seconds: Double) {
    let stamp = ServerTimestamp(wrappedValue: Date(timeIntervalSince1970: seconds))
    let error = thrown { _ = try Database.Encoder().encode(["t": stamp]) }
    #expect(place(error) == "invalidValue t")
    // Foundation traps if a date that is NaN is shown; the error can be.
    #expect(printed(error).contains("\(seconds)"))
  }

  @Test("types that encode server values and priorities")
  func serverValues() async throws {
    struct Increment: Encodable {
      var by: Double
      enum CodingKeys: String, CodingKey { case sv = ".sv" }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(["increment": by], forKey: .sv)
      }
    }
    struct Ranked<T: Encodable>: Encodable {
      var value: T
      var priority: Double
      enum CodingKeys: String, CodingKey {
        case value = ".value"
        case priority = ".priority"
      }
    }
    let ref = Database.inMemory().reference()
    try await ref.setValue(["whole": 1, "in": ["side": 2, "gone": 3]])
    try await ref.child("whole").setValue(from: Increment(by: 4))
    try await ref.child("in").setValue(from: ["side": Increment(by: 0.5)])
    #expect(shown(try await ref.getData().value) == "{in:{side:2.5},whole:5.0}")
    try await ref.setValue(from: ["a": Ranked(value: "x", priority: 7)])
    #expect(
      shown(try await ref.getData().valueInExportFormat())
        == "{a:{.priority:7.0,.value:\"x\"}}")
    let badContent = await failure { try await ref.setValue(from: ["a": [".sv": "nonsense"]]) }
    #expect(badContent?.code == .invalidData)
    #expect(badContent?.message.contains("/a") == true)
    let notAlone = await failure { try await ref.setValue(from: [".sv": "timestamp", "x": "y"]) }
    #expect(notAlone?.code == .invalidData)
    let container = await failure { try await ref.setValue(from: [".value": ["a": 1]]) }
    #expect(container?.code == .invalidLeafValueType)
  }

  @Test("the events of a value are those of its data")
  func events() async throws {
    let database = Database.inMemory()
    let recorder = Recorder(database)
    let ref = database.reference().child("p")
    recorder.listen("", ref, [.value])
    try await ref.setValue(from: Post(title: "x", stars: 1, tags: [], postedAt: .distantPast))
    try await ref.setValue(from: Post(title: "x", stars: 1, tags: [], postedAt: .distantPast))
    try await ref.setValue(from: Int?.none)
    #expect(
      await recorder.take() == [
        "value null", "value {postedAt:-62135769600000,stars:1,title:\"x\"}", "value null",
      ])
  }
}
