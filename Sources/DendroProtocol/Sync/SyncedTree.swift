package import DendroTree

/// The data of a client that keeps in step with a server: what the server has said of what is listened to, the writes
/// that it has not answered, and what listeners see of both.
///
/// A value without sockets and clocks. Each call is a step: it returns what listeners see change, and what is to be sent.
package struct SyncedTree: Sendable {
  package typealias Target = QueryTarget

  /// A change of what is known of a target.
  package struct Step: Sendable {
    package let target: Target
    package let before: Knowledge
    package let after: Knowledge

    /// - Returns: nil if nothing changes.
    init?(_ target: Target, from before: Knowledge, to after: Knowledge) {
      if before.isComplete == after.isComplete, before.isWindow == after.isWindow,
        before.node.isIdentical(to: after.node)
      {
        return nil
      }
      self.target = target
      self.before = before
      self.after = after
    }
  }

  /// What an operation brings about: changes of what listeners see, and of what the server has said.
  struct Outcome {
    var steps: [Step] = []
    var learned: [Step] = []
  }

  /// What is to be sent to the server.
  package enum Request: Sendable {
    /// Begins a listen.
    ///
    /// - Parameters:
    ///   - number: of this listen, for `listened`.
    ///   - tag: of a query; nil for all of a location.
    ///   - known: what the server has said there before.
    ///   - lsn: of a write of the server after which that was right; 0 if none is known.
    case listen(Target, number: Int, tag: Int?, known: Node, lsn: UInt64)
    case stop(Target, tag: Int?)
  }

  private var points = ListenPoints()
  package private(set) var pending = PendingWrites()
  /// The tags of queries, which go with their views.
  private var tags: [Target: Int] = [:]
  private var tagged: [Int: Target] = [:]
  private var lastTag = 0
  /// The listens that the server has, or is about to get, with their numbers.
  private var listenNumbers: [Target: Int] = [:]
  private var lastListen = 0
  /// The listens without an answer, by their numbers, and what the server was told is known already. Those are not among
  /// them of which it has said since what is there.
  private var told: [Int: (target: Target, known: Node)] = [:]
  /// For each listen, a write of the server: the listen has received that one and all before it.
  private var heard: [Target: UInt64] = [:]

  /// What is kept also if nothing listens to it; nil if nothing is.
  package var cache: SyncCache?

  /// Whether the server is `dendro serve`: before it answers a write, it tells of all that listens show of it.
  var isOurServer = false

  package init() {}

  // MARK: Listens

  /// What is known of a target now; nil if it is not shown.
  package func visible(_ target: Target) -> Knowledge? {
    points.points(at: target.path)?[target.parameters]?.visible
  }

  /// Begins to show a target.
  package mutating func begin(_ target: Target) -> [Request] {
    if visible(target) != nil { return [] }
    let isCovered = points.covers(target.path)
    let view = ListenedView(
      target.parameters, knowledge(of: target), pending.layer.below(target.path))
    cache?.use(target.listened)
    if !target.parameters.showsAll {
      lastTag += 1
      tags[target] = lastTag
      tagged[lastTag] = target
    }
    points.change(at: target.path) { $0.add(view) }
    if isCovered { return [] }
    var requests = [listen(target.listened)]
    if target.parameters.showsAll, let here = points.points(at: target.path) {
      // It covers everything here and below.
      for other in here.distinctTargets(at: target.path, isTop: true) { requests += stop(other) }
    }
    return requests
  }

  /// What the server has said of a target, to listens now or to earlier ones.
  private func knowledge(of target: Target) -> Knowledge {
    let known = points.knowledge(of: target.path)
    guard !known.isComplete, var kept = cache?.knowledge(of: target) else { return known }
    if kept.isComplete { return kept }
    for (key, child) in known.node.children { kept.node.put(child, at: key) }
    return kept
  }

  /// Shows a target no more.
  package mutating func end(_ target: Target) -> [Request] {
    guard visible(target) != nil else { return [] }
    cache?.use(target.listened)
    points.change(at: target.path) { $0.remove(target.parameters) }
    defer { forgetTag(of: target) }
    if points.covers(target.path) { return [] }
    return uncovered(target) + stop(target.listened)
  }

  /// The listens that are needed once one has ended.
  private mutating func uncovered(_ target: Target) -> [Request] {
    guard target.parameters.showsAll, let here = points.points(at: target.path) else { return [] }
    return here.distinctTargets(at: target.path).map { listen($0) }
  }

  private mutating func listen(_ target: Target) -> Request {
    lastListen += 1
    listenNumbers[target] = lastListen
    return request(target, lastListen)
  }

  private mutating func request(_ target: Target, _ number: Int) -> Request {
    guard let known = points.points(at: target.path)?.server(target.parameters) else {
      return request(target, number, .empty, 0)
    }
    let lsn = known.isComplete ? heard[target] ?? cache?.heard(target) : nil
    return request(target, number, known.node, lsn ?? 0)
  }

  private mutating func request(
    _ target: Target, _ number: Int, _ known: Node, _ lsn: UInt64
  ) -> Request {
    told[number] = (target, known)
    return .listen(target, number: number, tag: tags[target], known: known, lsn: lsn)
  }

  /// The listens that the server is to have, for a new connection, in the order in which they have begun.
  package mutating func listens() -> [Request] {
    told = [:]
    return listenNumbers.sorted { $0.value < $1.value }.map { request($0.key, $0.value) }
  }

  /// Whether the server has, or is about to get, a listen.
  var isListening: Bool { !listenNumbers.isEmpty }

  /// The tag of a query that is shown.
  package func tag(of target: Target) -> Int? { tags[target] }

  /// The number of a target's listen; nil if there is none.
  package func listenNumber(of target: Target) -> Int? { listenNumbers[target.listened] }

  private mutating func stop(_ target: Target) -> [Request] {
    heard[target] = nil
    return listenNumbers.removeValue(forKey: target).map { _ in [.stop(target, tag: tags[target])] }
      ?? []
  }

  private mutating func forgetTag(of target: Target) {
    if let tag = tags.removeValue(forKey: target) { tagged[tag] = nil }
  }

  /// The server says what is there for a listen that it has not answered yet: not what it was told.
  package mutating func noteNews(number: Int) { told[number] = nil }

  /// What a listen that has no answer yet shows with the changes that the server sends.
  ///
  /// - Parameters:
  ///   - hash: of the value with the entries.
  ///   - later: what has changed since then.
  /// - Returns: nil if the value does not have the hash, or if the server has sent another one meanwhile.
  package func renewed(
    number: Int, _ entries: [PendingWrites.Entry], hash: String, later: [PendingWrites.Entry]
  ) -> Node? {
    guard var node = told[number]?.known else { return nil }
    for entry in entries { node.put(entry.node, at: entry.place) }
    guard TreeHash.hash(node) == hash else { return nil }
    for entry in later { node.put(entry.node, at: entry.place) }
    return node
  }

  /// Forgets which writes the listens have received.
  package mutating func forgetHeard() {
    heard = [:]
    cache?.forgetHeard()
  }

  /// The listens have received all writes of the server up to this one.
  ///
  /// - Parameters:
  ///   - lsn: of the write.
  ///   - unanswered: the listens for which that is not so, since they have no answer yet.
  package mutating func hear(_ lsn: UInt64, unanswered: Set<Int>) {
    for (target, number) in listenNumbers
    where target.parameters.showsAll && !unanswered.contains(number) {
      hear(lsn, target)
    }
  }

  private mutating func hear(_ lsn: UInt64, _ target: Target) {
    heard[target] = lsn
    cache?.hear(lsn, target)
  }

  /// The server has answered a listen. If it has not said what is there, it is what the server was told: that counts, and not
  /// what has come since for listens that ended before this one began. The official SDK keeps the latter. It also goes on to know
  /// of a query all that a listen of its location had told; with our own server no more than the query shows is known.
  ///
  /// - Parameters:
  ///   - number: of the listen.
  ///   - target: of the listen.
  ///   - lsn: of the last write of which the server has told; nil if it does not say so.
  package mutating func listened(number: Int, _ target: Target, lsn: UInt64? = nil) -> [Step] {
    let told = told.removeValue(forKey: number)
    guard listenNumbers[target] == number else { return [] }
    let isWindow = isOurServer && !target.parameters.showsAll
    let steps = learn(
      .listened(told?.known, isWindow: isWindow), at: DataPlace(target.path),
      target.parameters.showsAll ? nil : target)
    if let server = points.points(at: target.path)?.server(target.parameters), server.isComplete {
      cache?.listened(target, server)
    }
    if let lsn { hear(lsn, target) }
    return steps
  }

  /// Whether the server keeps a target up to date.
  package func isListened(_ target: Target) -> Bool {
    listenNumbers[target] != nil || points.covers(target.path)
  }

  /// The server has refused a listen: what depended on it is shown no more.
  ///
  /// - Returns: the targets that have ended, and what is to be sent.
  package mutating func refused(
    number: Int, _ target: Target
  ) -> (ended: [Target], requests: [Request]) {
    told[number] = nil
    guard listenNumbers[target] == number else { return ([], []) }
    listenNumbers[target] = nil
    heard[target] = nil
    // Those of the same location had its data from it.
    let ended =
      target.parameters.showsAll
      ? (points.points(at: target.path)?.views ?? []).map { Target(target.path, $0.parameters) }
      : [target]
    points.change(at: target.path) { points in
      for target in ended { points.remove(target.parameters) }
    }
    for target in ended {
      forgetTag(of: target)
      cache?.forget(target.listened)
    }
    return (ended, points.covers(target.path) ? [] : uncovered(target))
  }

  // MARK: What the server says

  /// The server has put a node to a place.
  ///
  /// - Parameter tag: of the query of which it says so; nil for a location. A tag that is not known any more changes nothing.
  package mutating func put(_ node: Node, at place: DataPlace, tag: Int?) -> [Step] {
    guard let target = target(of: tag) else { return [] }
    return learn(.news(node), at: place, target)
  }

  /// The server has put nodes to places below a location.
  package mutating func merge(
    _ entries: [PendingWrites.Entry], at path: Path, tag: Int?
  ) -> [Step] {
    guard let target = target(of: tag) else { return [] }
    return learn(.newsOfEntries(entries), at: DataPlace(path), target)
  }

  /// - Returns: inside nil for no tag; nil for one that is not known, or whose listen has ended and another one has told of all
  ///   that is there since: what is still on its way would make a window of that again.
  private func target(of tag: Int?) -> Target?? {
    guard let tag else { return .some(nil) }
    guard let target = tagged[tag] else { return nil }
    if isOurServer, listenNumbers[target] == nil,
      let server = points.points(at: target.path)?.server(target.parameters),
      server.isComplete, !server.isWindow
    {
      return nil
    }
    return .some(target)
  }

  /// - Parameter target: the query of which the server says so; nil if it says it of all that is there.
  private mutating func learn(
    _ kind: SyncOperation.Kind, at place: DataPlace, _ target: Target?
  ) -> [Step] {
    var outcome = Outcome()
    guard let target else {
      points.apply(SyncOperation(kind, at: place), pending.layer, into: &outcome)
      return note(outcome)
    }
    guard let path = place.path.relative(to: target.path) else { return [] }
    let operation = SyncOperation(kind, at: DataPlace(path, isPriority: place.isPriority))
    let writes = pending.layer.below(target.path)
    points.change(at: target.path) { points in
      points.apply(operation, to: target.parameters, writes, at: target.path, into: &outcome)
    }
    return note(outcome)
  }

  /// Keeps what the server has said.
  private mutating func note(_ outcome: Outcome) -> [Step] {
    guard cache != nil else { return outcome.steps }
    for step in outcome.learned
    where step.after.isComplete && !points.knowsMore(than: step.target) {
      cache?.learn(step.target.listened, from: step.before, to: step.after)
    }
    return outcome.steps
  }

  // MARK: Reading

  /// What is at a location with the pending writes, also those that listeners do not see; nil if not all of it is known.
  ///
  /// - Parameters:
  ///   - path: of the location.
  ///   - numbers: of writes that do not count.
  package func node(at path: Path, without numbers: Set<Int> = []) -> Node? {
    let known = knowledge(of: Target(path))
    return pending.node(at: path, over: known.isComplete ? known.node : nil, without: numbers)
  }

  /// What a target shows; nil if not all of it is known.
  package func shown(by target: Target) -> Node? {
    if let visible = visible(target), visible.isComplete {
      return visible.node.filtered(by: target.parameters)
    }
    let known = points.knowledge(of: target.path)
    let writes = pending.layer.below(target.path)
    let node = writes.whole ?? (known.isComplete ? writes.applied(to: known.node) : nil)
    return node?.filtered(by: target.parameters)
  }

  /// What a target shows of what is kept; nil if not all of it is.
  package func kept(_ target: Target) -> Node? {
    guard let kept = cache?.knowledge(of: target), kept.isComplete else { return nil }
    return shown(kept.node, by: target)
  }

  /// What a target shows if this is what the server has there.
  package func shown(_ node: Node, by target: Target) -> Node {
    pending.layer.below(target.path).applied(to: node).filtered(by: target.parameters)
  }

  // MARK: Writes

  /// The client writes. The number is above those of the writes before it.
  package mutating func write(_ write: PendingWrites.Write, number: Int) -> [Step] {
    pending.append(write, number: number)
    guard write.isVisible else { return [] }
    var outcome = Outcome()
    let kind: SyncOperation.Kind =
      write.isUpdate ? .writes(write.entries) : .write(write.entries[0].node)
    let operation = SyncOperation(kind, at: write.place)
    points.apply(operation, pending.layer, into: &outcome)
    return note(outcome)
  }

  /// The server has answered a write.
  package mutating func answered(number: Int, isAccepted: Bool) -> [Step] {
    let taken = isAccepted ? pending.writes[number] : nil
    let steps = taken.map { learn(taken: $0) } ?? []
    guard let write = pending.remove(number: number) else { return steps }
    var outcome = Outcome()
    let places = write.isUpdate ? write.entries.map(\.place) : nil
    let kind: SyncOperation.Kind =
      isAccepted ? .accepted(places, isTold: isOurServer) : .refused
    points.apply(SyncOperation(kind, at: write.place), pending.layer, into: &outcome)
    return steps + note(outcome)
  }

  /// The server has taken a write. Listens have told of it before; what is kept from earlier shows it from now on, for as
  /// long as no listen tells what is there.
  private mutating func learn(taken write: PendingWrites.Write) -> [Step] {
    guard cache != nil else { return [] }
    var outcome = Outcome()
    for entry in write.entries {
      let place = entry.place.below(write.path)
      for (target, _) in told.values { learn(entry.node, at: place, by: target, into: &outcome) }
      keep(entry.node, at: place)
    }
    return note(outcome)
  }

  /// Keeps what the server has taken, but for those parts of which listens tell what is there.
  private mutating func keep(_ node: Node, at place: DataPlace) {
    let path = place.path
    guard let data = cache?.data, !points.tells(path) else { return }
    var node = node
    if !place.isPriority, let points = points.points(at: path) {
      points.forEachTold { told in
        node.graft(data.node(at: path.appending(told)), at: told)
      }
    }
    cache?.put(node, at: place)
  }

  /// Changes what is known of a target that waits for the answer to its listen.
  private mutating func learn(
    _ node: Node, at place: DataPlace, by target: Target, into outcome: inout Outcome
  ) {
    guard let known = points.points(at: target.path)?.server(target.parameters), known.isComplete,
      let operation = SyncOperation(.news(node), at: place).below(target.path)
    else { return }
    // A query may not show other children.
    let key = operation.place.path.first
    guard target.parameters.showsAll || key.map({ known.node.has($0) }) == true else { return }
    let writes = pending.layer.below(target.path)
    points.change(at: target.path) { points in
      if target.parameters.showsAll {
        points.apply(operation, writes, at: target.path, into: &outcome)
      } else {
        points.apply(operation, to: target.parameters, writes, at: target.path, into: &outcome)
      }
    }
  }
}

extension QueryTarget {
  /// What the server is asked for: queries without bounds and limit share the listen of the location.
  var listened: QueryTarget { parameters.showsAll ? QueryTarget(path) : self }
}
