import DendroTestSupport
import DendroTree

/// The writes of the writers: a pure function of seed, writer and number, so that the whole tree follows
/// from the number of writes of each writer.
///
/// Each writer alternates between an update of several places, which must happen in all of them or
/// in none, and an increment, which every other writer makes by a transaction. Every update also counts
/// itself twice, for its writer and in all.
struct KillWorkload: Sendable {
  let seed: UInt64

  /// A post's content, in `posts/<key>` and in `user-posts/<writer>/<key>` alike.
  struct Post: Equatable, Sendable {
    var author: Int
    var number: Int
    var text: String
  }

  /// What the writes of one writer leave behind, but for the sums that all share.
  struct WriterState: Equatable, Sendable {
    var done = 0
    var posts: [String: Post] = [:]
    var starsGiven = 0

    var updateCount: Int { (done + 1) / 2 }
    var incrementCount: Int { done / 2 }
  }

  /// The numbers from 1 on: odd ones are updates, even ones increments.
  func write(of writer: Int, number: Int) -> Write {
    if number.isMultiple(of: 2) {
      return .increment(path("plain/\(writer)"), .integer(1))
    }
    var entries: [Write.Entry] = [
      Write.Entry(path: path("counters/updates/\(writer)"), action: .increment(.integer(1))),
      Write.Entry(path: path("counters/total"), action: .increment(.integer(1))),
    ]
    switch step(of: writer, number: number) {
    case .post(let key, let post):
      let node = Self.node(post)
      entries.append(Write.Entry(path: path("posts/\(key)"), action: .set(node)))
      entries.append(Write.Entry(path: path("user-posts/\(writer)/\(key)"), action: .set(node)))
    case .remove(let key):
      entries.append(Write.Entry(path: path("posts/\(key)"), action: .remove))
      entries.append(Write.Entry(path: path("user-posts/\(writer)/\(key)"), action: .remove))
    case .star(let target, let count):
      entries.append(
        Write.Entry(path: path("stars/\(target)"), action: .increment(.integer(Int64(count)))))
      entries.append(
        Write.Entry(path: path("star-count/\(writer)"), action: .increment(.integer(Int64(count)))))
    }
    return .update(.root, entries)
  }

  func apply(_ number: Int, of writer: Int, to state: inout WriterState) {
    precondition(number == state.done + 1, "writes are applied in order")
    state.done = number
    guard !number.isMultiple(of: 2) else { return }
    switch step(of: writer, number: number) {
    case .post(let key, let post): state.posts[key] = post
    case .remove(let key): state.posts[key] = nil
    case .star(_, let count): state.starsGiven += count
    }
  }

  private enum Step {
    case post(String, Post)
    case remove(String)
    case star(Int, Int)
  }

  private func step(of writer: Int, number: Int) -> Step {
    var random = SeededGenerator(seed: seed, writer: writer, number: number)
    switch random.next() % 10 {
    case 0..<5:
      return .post(key(writer, number), post(writer, number, &random))
    case 5:  // over an older one
      let older = max(1, number - 2 * Int(random.next() % 8))
      return .post(key(writer, older), post(writer, number, &random))
    case 6, 7, 8:  // there or not: removing what is not there is in the game
      return .remove(key(writer, max(1, number - 2 * Int(random.next() % 40))))
    default:
      return .star(Int(random.next() % 16), Int(random.next() % 5) + 1)
    }
  }

  private func key(_ writer: Int, _ number: Int) -> String { "w\(writer)-\(number)" }

  private func post(_ writer: Int, _ number: Int, _ random: inout SeededGenerator) -> Post {
    let words = ["tree", "ring", "log", "branch", "leaf", "root", "été", "木", "🌲", "bark"]
    // Now and then one that takes several pages of the file.
    let count = random.next() % 60 == 0 ? 2000 : Int(random.next() % 40) + 1
    let text = (0..<count).map { _ in words[Int(random.next() % 10)] }.joined(separator: " ")
    return Post(author: writer, number: number, text: text)
  }

  private func path(_ text: String) -> Path {
    // Made of digits and letters just above: there is nothing in it that could be refused.
    try! Path(parsing: text)
  }

  private static func node(_ post: Post) -> Node {
    var builder = NodeBuilder()
    for (name, value) in [
      ("author", Scalar.integer(Int64(post.author))), ("number", .integer(Int64(post.number))),
      ("text", .string(post.text)),
    ] {
      builder.append(try! Key(name), Node(value))
    }
    return builder.finish()
  }

  static func post(_ node: Node) -> Post? {
    guard node.childCount == 3,
      case .integer(let author)? = node.child(try! Key("author")).scalar,
      case .integer(let number)? = node.child(try! Key("number")).scalar,
      case .string(let text)? = node.child(try! Key("text")).scalar
    else { return nil }
    return Post(author: Int(author), number: Int(number), text: text)
  }
}

extension SeededGenerator {
  /// The numbers for one write of one writer.
  fileprivate init(seed: UInt64, writer: Int, number: Int) {
    self.init(
      seed: seed &+ UInt64(writer) &* 0xd1b5_4a32_d192_ed03
        &+ UInt64(number) &* 0x8cb9_2ba7_2f3d_8dd7)
    _ = next()
  }
}
