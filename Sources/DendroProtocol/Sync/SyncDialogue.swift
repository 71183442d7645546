package import DendroTree

/// A client's side of the dialogue with a server, and the data that it keeps in step: what goes to the server, and what
/// comes of what the server says.
///
/// A value without sockets and clocks. Listens and writes may be made at any time; what has no connection waits for one.
package struct SyncDialogue: Sendable {
  /// What is to be done after a call, in order.
  package enum Effect: Sendable {
    /// A message for the server.
    case send([UInt8])
    /// What is known of a target has changed.
    indirect case changed(SyncedTree.Step)
    /// A listen was refused, or ended by the server.
    indirect case ended(SyncedTree.Target, SyncRefusal)
    /// A write has its answer; nil if the server has taken it.
    case answered(write: Int, SyncRefusal?)
    /// Writes turn out to be those of a user.
    case owned(writes: [Int], SyncUser)
    /// A write is on its way to the server, for the first time. If it adds nothing, so are those of its user before it that
    /// add nothing.
    case sent(write: Int, time: Int64)
    /// A write may have been made by the server, which cannot tell. It waits until the application decides.
    case held(write: Int)
    /// A server that makes numbered writes once has said what it is.
    case met(KnownServer)
    /// A reading has its answer: what the server has, with the pending writes.
    case got(read: Int, Result<Node, SyncRefusal>)
    /// The block of a transaction is to be run on this input, and `decided` to be called with what it makes of that.
    case run(transaction: Int, input: Node)
    /// A transaction has ended.
    case transacted(Int, TransactionEnd)
    /// An operation on disconnecting is registered or cancelled; or it was refused.
    case registered(Int, SyncRefusal?)
    case signedIn(SyncRefusal?)
    /// The credential is valid no more.
    case revoked(SyncRefusal)
    /// The connection is ready. The time is the server's, in milliseconds since 1970.
    case ready(session: String, time: Int64)
    /// The connection is to be closed, and one to this host to be made.
    case connectAgain(host: String)
    /// The connection is to be closed for good.
    case shutDown(String)
    /// The server says what no server says, or what this client cannot go on with: the connection is to be made again.
    case fail(String)
    /// A line for the log.
    case note(String)
  }

  /// What needs the data of a target.
  package enum Use: Hashable, Sendable {
    case listener(UInt)
    case transaction(Int)
    /// The program wants it to be kept in step.
    case kept
  }

  package internal(set) var tree = SyncedTree()
  /// What is kept also if nothing listens to it; nil if nothing is.
  package var cache: SyncCache? {
    get { tree.cache }
    _modify { yield &tree.cache }
  }
  var phase = Phase.offline
  /// The number of the last request, over all connections.
  var lastRequest = 0
  /// The requests of this connection without an answer.
  var awaited: [Int: Awaited] = [:]
  /// How many writes are among them.
  var onTheirWay: WritesOnTheirWay
  /// What is to be sent once the server has answered some of these, in order.
  var unsent = Queue<Unsent>()
  /// No listen among them has a lower number.
  var firstListen = 1
  var uses: [SyncedTree.Target: Set<Use>] = [:]
  /// The number of the last write, also of one that a transaction has made.
  package internal(set) var lastWrite = 0
  /// The writes without an answer, of the present user.
  var writes: [Int: OutgoingWrite] = [:]
  /// None of them has a lower number.
  var firstWrite = 1
  package internal(set) var user = SyncUser.anonymous
  /// The writes of other users without an answer.
  var waitingWrites: [Int: OutgoingWrite] = [:]
  /// By which the server tells writes apart; nil if they have no numbers.
  package var numbering: WriteNumbering?
  /// What the server has said of itself over this connection, if it makes numbered writes once.
  var server: NumberedServer?
  /// What such a server has said last, and when, by its clock.
  package var knownServer: KnownServer?
  var reads: [Int: SyncedTree.Target] = [:]
  var lastRead = 0
  var transactions = SyncTransactions()
  var lastTransaction = 0
  /// The operations on disconnecting without an answer.
  var registrations: [Int: Message] = [:]
  var lastRegistration = 0
  var credential: SyncCredential?
  /// Whose credential that is.
  var credentialUser = SyncUser.anonymous
  /// Who the server takes this client for, over this connection; nil as long as it has not said so.
  var confirmedUser: SyncUser?
  /// The number of the last sign-in or sign-out.
  var lastSignIn = 0
  private let software: String
  private var hasSaidSoftware = false

  enum Phase {
    case offline
    /// The server speaks first.
    case opening
    case ready
  }

  enum Awaited {
    /// The server was told what was right after this write of it; 0 if that is not known.
    indirect case listen(SyncedTree.Target, number: Int, lsn: UInt64)
    case write(Int, byteCount: Int)
    /// What the transactions of a group have made.
    case attempt(Int, byteCount: Int)
    case registration(Int)
    case read(Int)
    case signIn(Int)
    case lsn
    case other

    /// The number of the listen; nil if it is none.
    var listenNumber: Int? { if case .listen(_, let number, _) = self { number } else { nil } }
  }

  /// - Parameters:
  ///   - software: names this client to the server, as `sdk.js.12-18-0` does.
  ///   - countMax: so many writes are sent before the server has answered the first of them. A server makes the default in
  ///     about the time that a message takes around the world.
  package init(software: String, writesOnTheirWay countMax: Int = 8192) {
    self.software = software
    onTheirWay = WritesOnTheirWay(atMost: countMax)
  }

  /// Whether nothing is listened to, and nothing waits for an answer.
  package var wantsNothing: Bool {
    uses.isEmpty && writes.isEmpty && reads.isEmpty && registrations.isEmpty
  }

  // MARK: The connection

  /// A connection was made.
  package mutating func opened() { phase = .opening }

  /// The connection is gone.
  package mutating func lost() -> [Effect] {
    phase = .offline
    server = nil
    confirmedUser = nil
    awaited = [:]
    onTheirWay.reset()
    unsent = Queue()
    let repeatable = transactions.attempts.filter { $0.value.isNumbered && $0.value.user == user }
    return endAttempts(besides: Set(repeatable.keys))
  }

  /// What waits for the connection goes in the order in which the server needs it.
  mutating func goOn(_ server: NumberedServer?, time: Int64) -> [Effect] {
    phase = .ready
    var effects = meet(server, time: time)
    if !hasSaidSoftware {
      hasSaidSoftware = true
      var body = Array("{\"c\":{".utf8)
      JSONText.append(string: software, to: &body)
      effects.append(request("s", body + Array(":1}}".utf8), .other))
    }
    if let credential {
      effects.append(request(credential.action, credential.body, .signIn(lastSignIn)))
    }
    confirmedUser = userUnconfirmed(credential, credentialUser)
    effects += send(tree.listens())
    effects += sendWrites()
    effects += send(registrations.keys.sorted().map { .registration($0) })
    return effects + send(reads.keys.sorted().map { .read($0) })
  }

  mutating func request(
    _ action: String, _ body: [UInt8], _ awaits: Awaited
  ) -> Effect {
    lastRequest += 1
    awaited[lastRequest] = awaits
    return .send(SyncText.request(lastRequest, action, body))
  }

  mutating func send(_ requests: [SyncedTree.Request]) -> [Effect] {
    requests.isEmpty ? [] : send([.listens(requests)])
  }

  mutating func request(_ listenOrStop: SyncedTree.Request) -> Effect {
    switch listenOrStop {
    case .listen(let target, let number, let tag, let known, let lsn):
      listen(target, number, tag, known, since: lsn)
    case .stop(let target, let tag): request("n", SyncText.stop(target, tag), .other)
    }
  }

  /// Asks the server for the number of the last of its writes of which this client has heard. After the next connection the
  /// server tells what it has written since that.
  package mutating func askLSN() -> [Effect] {
    guard phase == .ready, server != nil, tree.isListening else { return [] }
    return [request("lsn", Array("{}".utf8), .lsn)]
  }

  private mutating func listen(
    _ target: SyncedTree.Target, _ number: Int, _ tag: Int?, _ known: Node, since lsn: UInt64
  ) -> Effect {
    // Other servers are asked as by the original.
    let lsn = server != nil && target.parameters.showsAll ? lsn : nil
    return request(
      "q", SyncText.listen(target, tag, hash: TreeHash.hash(known), since: lsn),
      .listen(target, number: number, lsn: lsn ?? 0))
  }
}
