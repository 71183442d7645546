import Dendro
import Dispatch
import Foundation
import Synchronization

/// Many writers of one social blog, in a process that is going to be killed.
///
/// Each post stands in two places, written at once; stars are counted by increments; drafts are
/// removed again; all users increment one counter. Before each write a line on standard output says what
/// is about to be written (`b`), and another one follows its acknowledgement (`a`).
final class BlogWriters: Sendable {
  private let database: Database
  private let root: DatabaseReference
  private let writers: Int
  private let seed: UInt64
  private let nextID = Atomic<UInt64>(1)
  /// Posts that every user may star.
  private let posts = Mutex<[(author: String, key: String)]>([])
  private let events = Mutex(BlogEvents())
  private let top = Mutex(TopPosts())

  init(directory: String, writers: Int, seed: UInt64) throws {
    var options = DatabaseOptions(durability: .everyCommit)
    // Checkpoints while the writers write, so that the kill may fall into one.
    options.checkpointByteMin = 256 << 10
    options.checkpointFactor = 1
    database = try Database.open(at: directory, options: options)
    root = database.reference()
    self.writers = writers
    self.seed = seed
  }

  func runUntilKilled() -> Never {
    listen()
    Self.say("ready")
    for index in 0..<writers {
      Task { await self.write(as: "user-\(index)", SplitMix(seed: seed &+ UInt64(index))) }
    }
    while true {
      Interruption.sleep(milliseconds: 100)
      events.withLock { Self.say("e \($0.added) \($0.changed) \($0.removed) \($0.views)") }
      top.withLock { Self.say($0.line) }
    }
  }

  // MARK: Listeners

  private func listen() {
    let posts = root.child("posts")
    posts.observe(.childAdded) { _ in self.events.withLock { $0.added += 1 } }
    posts.observe(.childChanged) { _ in self.events.withLock { $0.changed += 1 } }
    posts.observe(.childRemoved) { _ in self.events.withLock { $0.removed += 1 } }
    let ranked = TopPosts.query(posts)
    ranked.observe(.childAdded) { post in self.top.withLock { $0.enter(post) } }
    ranked.observe(.childRemoved) { post in self.top.withLock { $0.leave(post) } }
    ranked.observe(.childMoved) { _ in self.top.withLock { $0.move() } }
    ranked.observe(.value) { posts in
      if let complaint = self.top.withLock({ $0.take(posts) }) { Self.say("x \(complaint)") }
    }
    root.child("stats/views").observe(.value) { snapshot in
      let views = snapshot.value as? Int ?? 0
      self.events.withLock { events in
        if views < events.views {
          Self.say("x the listener saw \(events.views) views become \(views)")
        }
        events.views = views
      }
    }
  }

  // MARK: Writers

  private func write(as user: String, _ generator: SplitMix) async {
    var generator = generator
    var number = 0
    /// This user's drafts, which have no stars.
    var drafts: [String] = []
    /// Posts that this user has starred.
    var starred: Set<String> = []
    while true {
      switch generator.below(10) {
      case 0...2:
        number += 1
        let isDraft = generator.below(3) == 0
        guard let key = await post(BlogPost(author: user, number: number), isDraft: isDraft) else {
          return
        }
        if isDraft {
          drafts.append(key)
        } else {
          posts.withLock { $0.append((user, key)) }
        }
        guard
          await commit(
            "c \(user) \(number)",
            { try await self.root.child("users/\(user)/posts").setValue(number) })
        else { return }
      case 3...6:
        let choice = generator.next()
        let post = posts.withLock { posts in
          // The newest ones, as on any front page.
          posts.suffix(50).isEmpty
            ? nil : posts[posts.count - 1 - Int(choice % UInt64(min(50, posts.count)))]
        }
        guard let post, starred.insert(post.key).inserted else { continue }
        guard
          await commit(
            "s \(user) \(post.key)", { try await self.star(post.author, post.key, user) })
        else { return }
      case 7:
        guard let key = drafts.popLast() else { continue }
        guard
          await commit(
            "r \(key)",
            {
              let gone = ["posts/\(key)": NSNull(), "user-posts/\(user)/\(key)": NSNull()]
              try await self.root.updateChildValues(gone)
            })
        else { return }
      default:
        guard
          await commit(
            "v",
            { try await self.root.child("stats/views").setValue(ServerValue.increment(1)) })
        else { return }
      }
    }
  }

  private func post(_ post: BlogPost, isDraft: Bool) async -> String? {
    guard let key = root.child("posts").childByAutoId().key else { return nil }
    let line = "p \(post.author) \(key) \(post.number) \(isDraft ? 1 : 0)"
    let done = await commit(line) {
      let content: [String: Any] = [
        "uid": post.author, "title": post.title, "body": post.body, "starCount": 0,
      ]
      try await self.root.updateChildValues([
        "/posts/\(key)": content, "/user-posts/\(post.author)/\(key)/": content,
      ])
    }
    return done ? key : nil
  }

  private func star(_ author: String, _ key: String, _ user: String) async throws {
    try await root.updateChildValues([
      "posts/\(key)/stars/\(user)": true,
      "posts/\(key)/starCount": ServerValue.increment(1),
      "user-posts/\(author)/\(key)/stars/\(user)": true,
      "user-posts/\(author)/\(key)/starCount": ServerValue.increment(1),
    ])
  }

  /// Announces a write, does it, reports its acknowledgement.
  private func commit(_ line: String, _ write: () async throws -> Void) async -> Bool {
    let id = nextID.wrappingAdd(1, ordering: .relaxed).oldValue
    Self.say("b \(id) \(line)")
    do {
      try await write()
      Self.say("a \(id)")
      return true
    } catch {
      Self.say("x write \(id) (\(line)) was refused: \(error)")
      return false
    }
  }

  /// One call for the whole line: lines of several threads do not mix.
  private static func say(_ line: String) {
    var line = line + "\n"
    line.withUTF8 {
      try? Platform.writeAll(1, UnsafeRawBufferPointer($0), to: "the record")
    }
  }
}

/// How many events the listeners received.
struct BlogEvents {
  var added = 0
  var changed = 0
  var removed = 0
  var views = 0

  var events: Int { added + changed + removed + views }
  var text: String {
    "\(Format.count(added)) posts added, \(Format.count(changed)) changed, "
      + "\(Format.count(removed)) removed, \(Format.count(views)) views"
  }
}

/// Sebastiano Vigna's generator: what a writer does follows from its seed.
struct SplitMix {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
