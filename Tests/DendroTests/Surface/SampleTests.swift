import Dendro
import Foundation
import Testing

/// The calls of Firebase's guides, as an app writes them: completion blocks and plain closures.
@Suite("As an app writes it")
struct SampleTests {
  /// An object of the user interface: closures that touch it must compile, and are called where it lives.
  @MainActor
  final class App {
    let ref: DatabaseReference
    var refHandle: DatabaseHandle = 0
    var title = ""
    var lines: [String] = []

    init(_ database: Database) { ref = database.reference() }

    func write(_ done: @escaping @Sendable () -> Void) {
      ref.child("users").child("u1").setValue(["username": "ada"])
      ref.child("users/u1/email").setValue("ada@example.org")
      guard let key = ref.child("posts").childByAutoId().key else { return }
      let post = ["uid": "u1", "author": "ada", "title": "Rings", "body": "…"]
      let childUpdates = ["/posts/\(key)": post, "/user-posts/u1/\(key)/": post]
      ref.updateChildValues(childUpdates)
      let updates =
        [
          "posts/\(key)/stars/u2": true,
          "posts/\(key)/starCount": ServerValue.increment(1),
        ] as [String: Any]
      ref.updateChildValues(updates)
      ref.child("users").child("u1").setValue(["username": "grace"]) {
        (error: Error?, ref: DatabaseReference) in
        if let error = error {
          self.lines.append("failed: \(error).")
        } else {
          self.lines.append("saved \(ref.key!)")
        }
        done()
      }
    }

    func read(_ done: @escaping @Sendable () -> Void) {
      ref.child("users/u1/username").getData(completion: { error, snapshot in
        guard error == nil else { return }
        self.lines.append(snapshot.value as? String ?? "Unknown")
      })
      ref.child("users").child("u1").observeSingleEvent(
        of: .value,
        with: { snapshot in
          let value = snapshot.value as? NSDictionary
          self.lines.append(value?["username"] as? String ?? "")
          done()
        }
      ) { error in
        self.lines.append(error.localizedDescription)
      }
    }

    func watch() {
      refHandle = ref.child("posts").observe(
        DataEventType.value,
        with: { snapshot in
          for case let post as DataSnapshot in snapshot.children {
            let content = post.value as? [String: AnyObject]
            self.title = content?["title"] as? String ?? ""
            self.lines.append("\(self.title) \(content?["starCount"] as? Int ?? 0)")
          }
        })
    }
  }

  @Test("write, read, watch")
  @MainActor
  func guide() async throws {
    let database = Database.inMemory()
    let app = App(database)
    app.watch()
    await withCheckedContinuation { continuation in app.write { continuation.resume() } }
    await withCheckedContinuation { continuation in app.read { continuation.resume() } }
    #expect(app.lines == ["Rings 0", "Rings 1", "saved u1", "grace", "grace"])
    app.ref.child("posts").removeObserver(withHandle: app.refHandle)
  }

  @Test("the examples of the article on queries")
  func queries() async throws {
    let database = Database.inMemory()
    let posts = database.reference().child("posts")
    try await posts.setValue([
      "tree-1": ["stars": 3, "date": "2026-07-31"], "tree-2": ["stars": 5, "date": "2026-08-01"],
      "treat": ["date": "2026-08-31"], "twig": ["stars": 1, "date": "2026-09-01"],
    ])
    var lines: [String] = []
    let best = posts.queryOrdered(byChild: "stars").queryLimited(toLast: 10)
    for post in try await best.getData() {
      lines.append("\(post.key) \(post["stars"].int ?? 0)")
    }
    #expect(lines == ["treat 0", "twig 1", "tree-1 3", "tree-2 5"])

    let august = posts.queryOrdered(byChild: "date")
      .queryStarting(atValue: "2026-08").queryEnding(beforeValue: "2026-09")
    let unrated = posts.queryOrdered(byChild: "stars").queryEqual(toValue: nil)
    let named = posts.queryOrderedByKey().queryStarting(atValue: "tree-")
      .queryEnding(atValue: "tree-\u{f8ff}")
    #expect(try await august.getData().map(\.key) == ["tree-2", "treat"])
    #expect(try await unrated.getData().map(\.key) == ["treat"])
    #expect(try await named.getData().map(\.key) == ["tree-1", "tree-2"])

    // A page after the other.
    let byStars = posts.queryOrdered(byChild: "stars")
    let first = try await byStars.queryLimited(toFirst: 2).getData()
    let last = try #require(first.map(\.self).last)
    let next = byStars.queryStarting(afterValue: last["stars"].value, childKey: last.key)
    #expect(first.map(\.key) == ["treat", "twig"])
    #expect(try await next.getData().map(\.key) == ["tree-1", "tree-2"])
  }

  @Test("values go from one actor to another without a copy being asked for")
  @MainActor
  func fromAnActor() async throws {
    let ref = Database.inMemory().reference()
    let post: [String: Any] = ["title": "Rings", "stars": 3]
    try await ref.setValue(post)
    let snapshot = try await ref.getData()
    #expect(snapshot["stars"].int == 3)
    _ = post
  }
}
