/// The writers' own record: what was about to be written, and what was acknowledged.
struct BlogRecord {
  struct Post {
    var post: BlogPost
    var isAcknowledged = false
    var removal = Progress.none
    /// Users, and whether their star was acknowledged.
    var stars: [String: Bool] = [:]
  }

  enum Progress {
    case none
    case begun
    case acknowledged
  }

  struct Range {
    var acknowledged = 0
    var begun = 0
  }

  private enum Write {
    case post(String)
    case star(String, by: String)
    case removal(String)
    case count(String, Int)
    case view
  }

  private(set) var posts: [String: Post] = [:]
  /// The post counter of each user.
  private(set) var counts: [String: Range] = [:]
  private(set) var views = Range()
  /// The database is open and the writers begin.
  private(set) var isReady = false
  private(set) var acknowledged = 0
  private(set) var listened = BlogEvents()
  /// The ranked list, as its listeners last had it.
  private(set) var top = TopPosts()
  /// What the process itself found wrong.
  private(set) var complaints: [String] = []
  private var begun: [UInt64: Write] = [:]

  /// Writes that were begun and not acknowledged: each is there or not, as a whole.
  var underWay: Int { begun.count }

  mutating func take(_ line: Substring) throws {
    let words = line.split(separator: " ")
    switch words.first {
    case "ready": isReady = true
    case "b" where words.count >= 3:
      guard let id = UInt64(words[1]) else { throw malformed(line) }
      begun[id] = try begin(words[2], words[3...].map(String.init), line)
    case "a" where words.count == 2:
      guard let id = UInt64(words[1]), let write = begun.removeValue(forKey: id) else {
        throw malformed(line)
      }
      acknowledged += 1
      acknowledge(write)
    case "e" where words.count == 5:
      let numbers = words.dropFirst().compactMap { Int($0) }
      guard numbers.count == 4 else { throw malformed(line) }
      listened = BlogEvents(
        added: numbers[0], changed: numbers[1], removed: numbers[2], views: numbers[3])
    case "t":
      guard let list = TopPosts(words.dropFirst()) else { throw malformed(line) }
      top = list
    case "x": complaints.append(String(line.dropFirst(2)))
    default: throw malformed(line)
    }
  }

  private func malformed(_ line: Substring) -> Failure {
    Failure(
      .problem,
      "the writer process printed a line that is not one of the record: \(line.prefix(200))")
  }

  /// The ranked list in words, the best one first.
  var ranking: String {
    top.entries.reversed().map { "\($0.stars) \(posts[$0.key]?.post.title ?? $0.key)" }
      .joined(separator: "; ")
  }

  private mutating func begin(_ kind: Substring, _ words: [String], _ line: Substring) throws
    -> Write
  {
    switch (kind, words.count) {
    case ("p", 4):
      guard let number = Int(words[2]) else { throw malformed(line) }
      posts[words[1]] = Post(post: BlogPost(author: words[0], number: number))
      return .post(words[1])
    case ("s", 2):
      posts[words[1]]?.stars[words[0]] = false
      return .star(words[1], by: words[0])
    case ("r", 1):
      posts[words[0]]?.removal = .begun
      return .removal(words[0])
    case ("c", 2):
      guard let number = Int(words[1]) else { throw malformed(line) }
      counts[words[0], default: Range()].begun = number
      return .count(words[0], number)
    case ("v", 0):
      views.begun += 1
      return .view
    default: throw malformed(line)
    }
  }

  private mutating func acknowledge(_ write: Write) {
    switch write {
    case .post(let key): posts[key]?.isAcknowledged = true
    case .star(let key, let user): posts[key]?.stars[user] = true
    case .removal(let key): posts[key]?.removal = .acknowledged
    case .count(let user, let number): counts[user, default: Range()].acknowledged = number
    case .view: views.acknowledged += 1
    }
  }
}
