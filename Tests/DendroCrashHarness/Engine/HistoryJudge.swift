import DendroTree
import Foundation
import DendroTestSupport

/// Judges whether what was observed can have happened one after the other, in the order of the log.
///
/// The log is the witness: it names an order of the writes, so that none has to be searched for. That
/// order must respect time: a write that was done before another began comes before it. A read has a
/// place in it between all that was done before it began and all that began after its answer, and not
/// before the place of an earlier read.
package struct HistoryJudge {
  private let history: ObservedHistory
  package private(set) var problems: [String] = []
  /// The oracle's trees: before the first write, after it, ….
  private var trees: [ModelTree] = [.empty]
  /// By the call's number, which write it was.
  private var positions: [Int: Int] = [:]
  /// The calls that wrote, in the order of the log.
  private var writers: [ObservedHistory.Call] = []

  package init(_ history: ObservedHistory) {
    self.history = history
    judgeWrites()
    // Without an order there is nothing to hold anything against.
    guard problems.isEmpty else { return }
    judgeOrder()
    judgeAnswers()
    judgeReads()
    var received: [(time: Int, position: Int, what: String)] = []
    for listener in history.listeners { judge(listener, &received) }
    judgeOrder(of: received)
  }

  // MARK: Writes

  /// Each call that wrote is in the log once, as it was asked for; and nothing else is.
  private mutating func judgeWrites() {
    let calls = Dictionary(uniqueKeysWithValues: history.calls.map { ($0.number, $0) })
    for (index, write) in history.log.enumerated() {
      var tree = trees[index]
      tree.apply(write)
      trees.append(tree)
      guard let number = Self.number(of: write), let call = calls[number],
        let expected = Self.write(of: call, on: trees[index])
      else {
        problems.append("write \(index + 1) is in no call: \(write)")
        continue
      }
      var wanted = trees[index]
      wanted.apply(expected)
      if wanted != tree {
        problems.append("write \(index + 1) of call \(number) is \(tree), not \(wanted)")
      }
      if let other = positions[number] {
        problems.append("call \(number) was written as \(other) and as \(index + 1)")
      }
      positions[number] = index + 1
      writers.append(call)
      if case .transact(let place) = call.action {
        let there = Self.text(of: trees[index].node(at: ModelTree.path(place.path)))
        if call.shown != there {
          problems.append(
            "transaction \(number) was given \(call.shown ?? "nothing"), but \(there) was there")
        }
      }
    }
    for call in history.calls where !call.action.isRead && positions[call.number] == nil {
      problems.append("call \(call.number), \(call.action), was answered and is not in the log")
    }
    if ModelTree(history.tree) != trees.last {
      problems.append("the tree is not what the log gives")
    }
  }

  /// What a write has of the number of the call that made it.
  private static func number(of write: Write) -> Int? {
    switch write {
    case .set(let path, let node):
      let place =
        path == ObservedHistory.Place.bank.path
        ? Path("last") : path == ObservedHistory.Place.pair.path ? Path("a") : .root
      if case .integer(let number)? = node.node(at: place).scalar { return Int(number) }
      return nil
    case .increment(_, .integer(let number)): return Int(number)
    case .update(let base, let entries):
      return entries.lazy.compactMap { entry -> Int? in
        let keys = base.appending(entry.path).keys.map(\.string)
        return keys.first == "marks" ? keys.last.flatMap { Int($0.dropFirst()) } : nil
      }.first
    default: return nil
    }
  }

  private static func write(of call: ObservedHistory.Call, on tree: ModelTree) -> Write? {
    let number = Node(.integer(Int64(call.number)))
    let mark = Write.Entry(path: Path("marks/m\(call.number)"), action: .set(number))
    switch call.action {
    case .set(let place): return .set(place.path, number)
    case .update(let places):
      return .update(
        .root, places.map { Write.Entry(path: $0.path, action: .set(number)) } + [mark])
    case .clear(let place):
      return .update(.root, [Write.Entry(path: place.path, action: .remove), mark])
    case .add: return .increment(ObservedHistory.Place.count.path, .integer(Int64(call.number)))
    case .transact(.bank):
      var count: Int64 = 0
      let there = tree.node(at: [Array("bank".utf8), Array("n".utf8)])
      if case .integer(let value)? = there.scalar { count = value }
      var node = Node.empty
      node.graft(Node(.integer(count + 1)), at: Path("n"))
      node.graft(number, at: Path("last"))
      return .set(ObservedHistory.Place.bank.path, node)
    case .transact(.pair):
      var node = Node.empty
      node.graft(number, at: Path("a"))
      node.graft(number, at: Path("b"))
      return .set(ObservedHistory.Place.pair.path, node)
    case .transact(let place): return .set(place.path, number)
    case .read, .observe, .abort: return nil
    }
  }

  // MARK: Time

  /// When it was done: a transaction may still have to wait when its call returns, and so may a listener.
  private static func done(_ call: ObservedHistory.Call) -> Int {
    switch call.action {
    case .transact, .abort, .observe: call.answered
    default: call.returned
    }
  }

  private mutating func judgeOrder() {
    for (index, later) in writers.enumerated() {
      for earlier in writers[(index + 1)...] where Self.done(earlier) < later.began {
        problems.append(
          "call \(earlier.number) was done before call \(later.number) began, but is written after")
      }
      // Transactions at one location, above or below run in the order in which they were started.
      guard case .transact(let place) = later.action else { continue }
      for earlier in writers[(index + 1)...] where earlier.returned < later.began {
        guard case .transact(let other) = earlier.action,
          place.path.isPrefix(of: other.path) || other.path.isPrefix(of: place.path)
        else { continue }
        problems.append(
          "transaction \(earlier.number) was started before \(later.number), but is written after")
      }
    }
  }

  /// Completions come in the order of the writes.
  private mutating func judgeAnswers() {
    for (earlier, later) in zip(writers, writers.dropFirst())
    where later.answered < earlier.answered {
      problems.append(
        "call \(later.number) was answered before call \(earlier.number), which is written before it"
      )
    }
  }

  /// The last write that a call which began at this time must see.
  private func lowest(for time: Int) -> Int {
    writers.indices.last { Self.done(writers[$0]) < time }.map { $0 + 1 } ?? 0
  }

  /// The last write that a call which had ended at this time can have seen.
  private func highest(for time: Int) -> Int {
    writers.firstIndex { $0.began > time } ?? writers.count
  }

  // MARK: Reads

  private mutating func judgeReads() {
    // Each at the earliest place that it can have, those first that were done first: if one order of
    // the reads exists, these places have it.
    var placed: [(done: Int, position: Int)] = []
    for call in history.calls.sorted(by: { Self.done($0) < Self.done($1) }) {
      let place: ObservedHistory.Place
      switch call.action {
      case .read(let here), .observe(let here), .abort(let here): place = here
      default: continue
      }
      let lowest = placed.lazy.filter { $0.done < call.began }.map(\.position)
        .reduce(self.lowest(for: call.began), max)
      let highest = self.highest(for: Self.done(call))
      let position = (0..<trees.count).first {
        $0 >= lowest && $0 <= highest && text(of: place, at: $0) == call.shown
      }
      if let position {
        placed.append((Self.done(call), position))
      } else {
        problems.append(
          "call \(call.number), \(call.action), showed \(call.shown ?? "nothing"), which was not "
            + "there after any of the writes \(lowest) to \(highest)")
      }
    }
  }

  private func text(of place: ObservedHistory.Place, at position: Int) -> String {
    Self.text(of: trees[position].node(at: ModelTree.path(place.path)))
  }

  // MARK: Listeners

  /// What was there, one different state after the other, and since which write.
  private func states(_ text: (ModelTree) -> String) -> [(position: Int, text: String)] {
    var states: [(position: Int, text: String)] = []
    for (position, tree) in trees.enumerated() {
      let text = text(tree)
      if states.last?.text != text { states.append((position, text)) }
    }
    return states
  }

  /// Where all the received events are among the states.
  private static func starts(
    of received: [String], in states: [(position: Int, text: String)], toTheEnd: Bool
  ) -> [Int] {
    guard received.count <= states.count else { return [] }
    return (0...states.count - received.count).filter { start in
      (!toTheEnd || start + received.count == states.count)
        && zip(received, states[start...]).allSatisfy { $0 == $1.text }
    }
  }

  private mutating func judge(
    _ listener: ObservedHistory.Listener,
    _ received: inout [(time: Int, position: Int, what: String)]
  ) {
    let path = ModelTree.path(listener.place.path)
    let name = "the listener to «\(listener.place.rawValue)» since \(listener.began)"
    // Once it is removed it may at most be in the middle of one call.
    if let removed = listener.removed {
      let late = listener.events.filter { $0.time > removed }
      if late.count > 1 {
        problems.append("\(name) got \(late.map(\.text)) after its removal")
      }
    }
    guard listener.kind == .value else {
      return judgeChildren(of: listener, path, name)
    }
    guard let first = listener.events.first else {
      if listener.ended == nil { problems.append("\(name) got nothing") }
      return
    }
    let states = states { Self.text(of: $0.node(at: path)) }
    let texts = listener.events.map(\.text)
    let (lowest, highest) = (lowest(for: listener.began), highest(for: first.time))
    let starts = Self.starts(of: texts, in: states, toTheEnd: listener.ended == nil)
      .filter { start in
        let last = start + 1 < states.count ? states[start + 1].position - 1 : trees.count - 1
        return states[start].position <= highest && last >= lowest
      }
    guard let start = starts.first else {
      return problems.append("\(name) got \(texts), but there were \(states.map(\.text))")
    }
    // If it could be two places, nothing follows from it.
    guard starts.count == 1 else { return }
    for (event, state) in zip(listener.events, states[start...]).dropFirst() {
      received.append((event.time, state.position, name))
    }
    judgeAnswers(after: listener, states[start...], name)
  }

  /// A write is answered after its events.
  private mutating func judgeAnswers(
    after listener: ObservedHistory.Listener,
    _ states: ArraySlice<(position: Int, text: String)>, _ name: String
  ) {
    for (index, state) in states.dropFirst().enumerated() {
      let answered = writers[state.position - 1].answered
      if let ended = listener.ended, answered > ended { return }
      let event = index + 1 < listener.events.count ? listener.events[index + 1].time : .max
      if event > answered {
        problems.append(
          "call \(writers[state.position - 1].number) was answered before \(name) got its event")
      }
    }
  }

  private mutating func judgeChildren(
    of listener: ObservedHistory.Listener, _ path: [[UInt8]], _ name: String
  ) {
    var keys = Set(listener.events.compactMap(\.key))
    for tree in trees {
      keys.formUnion(tree.node(at: path).children.keys.map { String(decoding: $0, as: UTF8.self) })
    }
    // Its three kinds of events are registered one after the other, and removed so: what was written
    // meanwhile may be delivered in part.
    let registered = highest(for: listener.returned)
    for key in keys.sorted() {
      let events = listener.events.filter { $0.key == key }
      let received = events.prefix { event in listener.ended.map { event.time < $0 } ?? true }.map(
        \.text)
      let rest = events.dropFirst(received.count).map(\.text)
      let states = states { Self.text(of: $0.node(at: path + [Array(key.utf8)])) }
      let early = states.filter { $0.position <= registered }.map(\.text)
      let late = states.filter { $0.position > registered }.map(\.text)
      let isRight = (0...late.count).contains { count in
        guard listener.ended != nil || count == late.count, count <= received.count else {
          return false
        }
        return received.suffix(count) == late.prefix(count)
          && Self.isSubsequence(received.dropLast(count), of: early)
          && Self.isSubsequence(rest[...], of: early + late.dropFirst(count))
      }
      if !isRight {
        problems.append(
          "\(name) got \(received + rest) of the child \(key), but there were "
            + "\(states.map(\.text))")
      }
    }
  }

  private static func isSubsequence(_ some: ArraySlice<String>, of all: [String]) -> Bool {
    var rest = all[...]
    return some.allSatisfy { text in
      guard let index = rest.firstIndex(of: text) else { return false }
      rest = rest[(index + 1)...]
      return true
    }
  }

  /// The events of a write come after those of earlier writes, across all listeners.
  private mutating func judgeOrder(of received: [(time: Int, position: Int, what: String)]) {
    var last: (time: Int, position: Int, what: String)?
    for one in received.sorted(by: { $0.time < $1.time }) {
      if let last, one.position < last.position {
        problems.append(
          "\(one.what) got write \(one.position) after \(last.what) of \(last.position)")
      }
      last = one
    }
  }

  // MARK: Texts

  /// Nothing where there is nothing; `{a:1,b:2}`.
  static func text(of tree: ModelTree) -> String {
    if case .integer(let number)? = tree.scalar { return "\(number)" }
    if tree.isEmpty { return "" }
    return joined(
      tree.children.map { (String(decoding: $0.key, as: UTF8.self), text(of: $0.value)) })
  }

  /// The same of what the API shows.
  static func text(of value: Any?) -> String {
    if let number = value as? Int { return "\(number)" }
    if let children = value as? [String: Any] {
      return joined(children.map { ($0.key, text(of: $0.value)) })
    }
    guard let value, !(value is NSNull) else { return "" }
    return "\(value)"
  }

  private static func joined(_ children: [(key: String, text: String)]) -> String {
    "{"
      + children.sorted { $0.key < $1.key }.map { "\($0.key):\($0.text)" }
      .joined(separator: ",") + "}"
  }
}
