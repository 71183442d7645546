import Dendro
import Synchronization

/// A listener of the API that records its events, to be compared with the data.
final class SoakListener: Sendable {
  enum Kind: CaseIterable, Sendable {
    /// The whole value each time.
    case value
    /// The four events of children, from which they are rebuilt.
    case children
  }

  private struct State {
    /// The snapshots that it got: they must stay as they are, whatever is written meanwhile.
    var value: DataSnapshot?
    /// Keys as bytes: strings would merge those that are only canonically equal.
    var children: [[UInt8]: DataSnapshot] = [:]
    /// Whether all first events have come. Registrations come one after the other, and writes
    /// between them: until then events of children that were not added yet are no error.
    var hasBegun = false
    var eventCount = 0
    /// Of these, those that came once it was removed.
    var lateCount = 0
    var isRemoved = false
    var tick = 0
    var problem: String?
  }

  private let kind: Kind
  let query: DatabaseQuery
  private let state = Mutex(State())
  private let handles = Mutex<[DatabaseHandle]>([])

  init(_ kind: Kind, to query: DatabaseQuery) {
    self.kind = kind
    self.query = query
  }

  func begin() {
    // The listener that gets the first events comes last: then the others miss no change after them.
    let types: [DataEventType] =
      kind == .value ? [.value] : [.childRemoved, .childChanged, .childMoved, .childAdded]
    let all = types.map { type in
      query.observe(
        type,
        andPreviousSiblingKeyWith: { [self] snapshot, previous in
          note(type, snapshot, previous)
        })
    }
    handles.withLock { $0 = all }
    if kind == .children {
      query.observeSingleEvent(of: .value) { [self] _ in state.withLock { $0.hasBegun = true } }
    }
  }

  func end() {
    for handle in handles.withLock({ $0 }) { query.removeObserver(withHandle: handle) }
    state.withLock { $0.isRemoved = true }
  }

  /// What is wrong with its events since it was removed: it may have been in the middle of one call.
  var lateProblem: String? {
    let count = state.withLock { $0.lateCount }
    return count > 1 ? "called \(count) times after it was removed" : nil
  }

  var eventCount: Int { state.withLock { $0.eventCount } }

  private func note(_ type: DataEventType, _ snapshot: DataSnapshot, _ previous: String?) {
    let tick = type == .value ? snapshot.childSnapshot(forPath: "tick").int : nil
    let key = Array(snapshot.key.utf8)
    let name = snapshot.key
    state.withLock { state in
      state.eventCount += 1
      if state.isRemoved { state.lateCount += 1 }
      if type == .value {
        state.value = snapshot
        // Events come in the order of the writes: the counter never falls.
        if let tick {
          if tick < state.tick { state.problem = "the counter fell from \(state.tick) to \(tick)" }
          state.tick = tick
        }
        return
      }
      // The order is not rebuilt: if one write moves several children, each event names the
      // sibling before it in the end, whose own event may come later.
      if previous.map({ Array($0.utf8) }) == key { state.problem = "\(name) comes after itself" }
      let old = state.children.removeValue(forKey: key)
      if old == nil, type != .childAdded, !state.hasBegun { return }
      if (old == nil) != (type == .childAdded) {
        state.problem = "\(type) of \(name), which was \(old == nil ? "not there" : "there")"
      }
      if type != .childRemoved { state.children[key] = snapshot }
    }
  }

  /// What is wrong, once all events have arrived; nil if nothing is.
  func problem(comparedWith snapshot: DataSnapshot) -> String? {
    let (value, children, problem) = state.withLock { ($0.value, $0.children, $0.problem) }
    if let problem { return problem }
    switch kind {
    case .value:
      let isEqual = value.map { Self.areEqual($0, snapshot) } ?? false
      return isEqual ? nil : "its last event has another value"
    case .children:
      let isEqual =
        children.count == snapshot.childrenCount
        && snapshot.allSatisfy { child in
          children[Array(child.key.utf8)].map { Self.areEqual($0, child) } ?? false
        }
      return isEqual ? nil : "its events give other children"
    }
  }

  /// Whether all is the same: keys byte for byte, children in their order, priorities.
  private static func areEqual(_ a: DataSnapshot, _ b: DataSnapshot) -> Bool {
    guard a.childrenCount == b.childrenCount, text(of: a.priority) == text(of: b.priority) else {
      return false
    }
    if a.childrenCount == 0 { return text(of: a.value) == text(of: b.value) }
    return zip(a, b).allSatisfy { $0.key.utf8.elementsEqual($1.key.utf8) && areEqual($0, $1) }
  }

  /// As bytes: strings that are only canonically equal are not the same.
  private static func text(of value: Any?) -> [UInt8] { Array("\(value ?? "nothing")".utf8) }
}
