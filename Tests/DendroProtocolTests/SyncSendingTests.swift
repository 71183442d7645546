import DendroTree
import Testing

@testable import DendroProtocol

/// Of many writes so many are sent at once, and the others as the server answers.
@Suite("keeping in step with a server: many writes")
struct SyncSendingTests {
  private var dialogue = SyncDialogue(software: "test", writesOnTheirWay: 3)
  /// The paths and numbers of the puts that were sent and not answered.
  private var sent: [(path: String, request: Int64)] = []
  /// The actions of the other requests that were sent.
  private var others: [String] = []
  /// What the blocks of transactions are to run on.
  private var inputs: [Node] = []

  // MARK: Steps

  private mutating func take(_ effects: [SyncDialogue.Effect]) {
    for case .run(_, let input) in effects { inputs.append(input) }
    for case .send(let message) in effects {
      guard let request = JSONMembers(message[...])?.object("d"), let action = request.string("a"),
        let number = request.integer("r"), let body = request.object("b")
      else { continue }
      if action == "p" {
        sent.append((body.string("p") ?? "", number))
      } else {
        others.append(action)
      }
    }
  }

  private mutating func write(_ name: String, _ value: String = "1") throws {
    let draft = Draft(.set(try Path(parsing: name), try json(value)))
    take(dialogue.write(SyncWrite(draft, time: 0, over: dialogue.tree)).effects)
  }

  private mutating func connect() {
    dialogue.opened()
    take(
      dialogue.receive(
        Array(#"{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"h","s":"s"}}}"#.utf8)))
  }

  private mutating func answer(_ status: String = "ok") {
    let request = sent.removeFirst().request
    take(
      dialogue.receive(
        Array(#"{"t":"d","d":{"r":\#(request),"b":{"s":"\#(status)","d":""}}}"#.utf8)))
  }

  private var paths: [String] { sent.map(\.path) }

  // MARK: Tests

  @Test("each answer lets the next write go, in the order in which they were made")
  mutating func order() throws {
    for name in ["a", "b", "c", "d"] { try write(name) }
    #expect(paths == [])
    connect()
    #expect(paths == ["/a", "/b", "/c"])
    try write("e")
    #expect(paths == ["/a", "/b", "/c"])
    answer()
    #expect(paths == ["/b", "/c", "/d"])
    answer("permission_denied")
    #expect(paths == ["/c", "/d", "/e"])
    for _ in 0..<3 { answer() }
    #expect(paths == [])
    try write("f")
    #expect(paths == ["/f"])
  }

  @Test("a lost connection leaves the order as it was")
  mutating func lost() throws {
    for name in ["a", "b", "c", "d", "e"] { try write(name) }
    connect()
    answer()
    _ = dialogue.lost()
    sent = []
    try write("f")
    connect()
    #expect(paths == ["/b", "/c", "/d"])
    for _ in 0..<2 { answer() }
    #expect(paths == ["/d", "/e", "/f"])
  }

  @Test("a write that waits was not sent: it says so when it is")
  mutating func marks() throws {
    connect()
    for name in ["a", "b", "c"] { try write(name) }
    func isSent() -> [Bool] { dialogue.pendingWrites.map(\.write.isSent) }
    #expect(isSent() == [true, true, true])
    try write("d")
    #expect(isSent() == [true, true, true, false])
    let number = sent.removeFirst().request
    let effects = dialogue.receive(
      Array(#"{"t":"d","d":{"r":\#(number),"b":{"s":"ok","d":""}}}"#.utf8))
    #expect(effects.contains { if case .sent(4, _) = $0 { true } else { false } })
    #expect(isSent() == [true, true, true])
  }

  @Test("what a transaction has made goes behind the writes before it, and ahead of those after it")
  mutating func transaction() throws {
    connect()
    for name in ["a", "b", "c"] { try write(name) }
    let path = try Path(parsing: "t")
    let id = dialogue.transact(at: path, isVisible: true).number
    take(dialogue.decided(id, .write(Draft(.set(path, Node(.integer(1)))), time: 0)))
    try write("d")
    #expect(paths == ["/a", "/b", "/c"])
    answer()
    #expect(paths == ["/b", "/c", "/t"])
    answer()
    #expect(paths == ["/c", "/t", "/d"])
  }

  @Test("a transaction that starts behind a write does not overtake it with those of its group")
  mutating func group() throws {
    connect()
    for name in ["a", "b", "c"] { try write(name) }
    let path = try Path(parsing: "t")
    func decide(_ value: Int64) -> SyncDialogue.Decision {
      .write(Draft(.set(path, Node(.integer(value)))), time: 0)
    }
    let first = dialogue.transact(at: path, isVisible: true).number
    take(dialogue.decided(first, decide(1)))
    try write("d")
    let second = dialogue.transact(at: path, isVisible: true).number
    take(dialogue.decided(second, decide(2)))
    for _ in 0..<3 { answer() }
    #expect(paths == ["/d", "/t"])
  }

  @Test("what is asked for behind a write that waits comes behind it")
  mutating func rest() throws {
    connect()
    others = []
    for name in ["a", "b", "c", "d"] { try write(name) }
    let path = try Path(parsing: "x")
    take(dialogue.begin(SyncedTree.Target(path), for: .listener(1)))
    take(dialogue.read(SyncedTree.Target(path)).effects)
    take(dialogue.registerOnDisconnect(Draft(.remove(path))).effects)
    take(dialogue.end(SyncedTree.Target(path), for: .listener(1)))
    #expect(others == [])
    answer()
    #expect(paths == ["/b", "/c", "/d"])
    #expect(others == ["q", "g", "o", "n"])
    take(dialogue.read(SyncedTree.Target(path)).effects)
    #expect(others == ["q", "g", "o", "n", "g"], "no write waits")
  }

  @Test("what waits behind writes goes on when those have to wait for a sign-in")
  mutating func signingIn() throws {
    connect()
    others = []
    for name in ["a", "b", "c", "d"] { try write(name) }
    take(dialogue.read(SyncedTree.Target(try Path(parsing: "x"))).effects)
    take(dialogue.signIn(.user(token: "t"), as: .user("u")))
    #expect(others == ["auth", "g"])
    #expect(paths == ["/a", "/b", "/c"])
  }

  @Test("a write that was made before the token came goes before those after it")
  mutating func token() throws {
    connect()
    let user = SyncUser.user("u")
    take(dialogue.change(user: user))
    try write("a")
    #expect(paths == [])
    take(dialogue.signIn(.user(token: "t"), as: user))
    try write("b")
    #expect(paths == ["/a", "/b"])
  }

  @Test("what comes while the result of a transaction waits has its block run again")
  mutating func staleTransaction() throws {
    connect()
    for name in ["a", "b", "c"] { try write(name) }
    let path = try Path(parsing: "t")
    let (id, effects) = dialogue.transact(at: path, isVisible: true)
    take(effects)
    take(dialogue.decided(id, .write(Draft(.set(path, Node(.integer(1)))), time: 0)))
    // The result hides it from all that listen.
    take(dialogue.receive(Array(#"{"t":"d","d":{"a":"d","b":{"p":"t","d":5}}}"#.utf8)))
    #expect(inputs == [.empty])
    answer()
    #expect(inputs == [.empty, Node(.integer(5))])
    #expect(paths == ["/b", "/c"])
    take(dialogue.decided(id, .write(Draft(.set(path, Node(.integer(6)))), time: 0)))
    #expect(paths == ["/b", "/c", "/t"])
  }

  @Test("what was given up is not sent")
  mutating func purged() throws {
    connect()
    for name in ["a", "b", "c", "d", "e"] { try write(name) }
    _ = dialogue.drop(write: 4)
    answer()
    #expect(paths == ["/b", "/c", "/e"])
    try write("f")
    take(dialogue.purge())
    answer()
    try write("g")
    #expect(paths == ["/c", "/e", "/g"])
  }

  @Test("long writes go one after the other")
  mutating func long() throws {
    let text = "\"" + String(repeating: "x", count: 5 << 20) + "\""
    for name in ["a", "b"] { try write(name, text) }
    connect()
    #expect(paths == ["/a"])
    answer()
    #expect(paths == ["/b"])
  }

  @Test("the writes of a user who comes back go in their order")
  mutating func users() throws {
    connect()
    for name in ["a", "b", "c", "d"] { try write(name) }
    let other = SyncUser.user("u")
    take(dialogue.signIn(.user(token: "t"), as: other))
    take(dialogue.change(user: other))
    try write("u")
    answer()
    // Without numbers the server gets the other user's write at once, behind what was sent before.
    #expect(paths == ["/b", "/c", "/u"])
    take(dialogue.signIn(nil))
    take(dialogue.change(user: .anonymous))
    for _ in 0..<3 { answer() }
    #expect(paths == ["/d"])
  }

  @Test("of writes that add nothing the last one that was sent tells of those before it")
  func records() throws {
    var pending = Node.empty
    func keep(_ number: Int, _ user: SyncUser, adds: Bool = false, sentTime: Int64? = nil) {
      let write = Write.set(.root, Node(.integer(1)))
      let draft = Draft(adds ? .increment(.root, .integer(1)) : write)
      let outgoing = OutgoingWrite(
        user: user, draft: draft, time: 1, incarnation: nil, sentTime: sentTime)
      pending.graft(SyncRecords.node(outgoing), at: Path.root.appending(Key(number)))
    }
    keep(1, .anonymous)
    keep(2, .user("u"))
    keep(3, .anonymous, adds: true)
    keep(4, .anonymous, sentTime: 7)
    keep(5, .anonymous)
    var sync = Node.empty
    sync.graft(pending, at: Path.root.appending(SyncRecords.pending))
    let writes = SyncRecords.writes(in: sync)
    #expect(writes.map(\.number) == [1, 2, 3, 4, 5])
    #expect(writes.map(\.write.sentTime) == [7, nil, nil, 7, nil])
  }
}
