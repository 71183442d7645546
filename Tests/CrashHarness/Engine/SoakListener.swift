import Dendro
import Synchronization

/// A listener of the API that keeps what it was told, to be held against the truth.
final class SoakListener: Sendable {
  enum Kind: CaseIterable, Sendable {
    /// The whole value each time.
    case value
    /// The four events of children, from which their list is rebuilt.
    case children
  }

  private struct State {
    var value: String?
    var children: [(key: String, text: String)] = []
    var eventCount = 0
    var tick = 0
    var problem: String?
  }

  private let kind: Kind
  let reference: DatabaseReference
  private let state = Mutex(State())
  private let handles = Mutex<[DatabaseHandle]>([])

  init(_ kind: Kind, at reference: DatabaseReference) {
    self.kind = kind
    self.reference = reference
  }

  func begin() {
    let types: [DataEventType] =
      kind == .value ? [.value] : [.childRemoved, .childAdded, .childChanged, .childMoved]
    let all = types.map { type in
      reference.observe(
        type,
        andPreviousSiblingKeyWith: { [self] snapshot, previous in
          note(type, snapshot, previous)
        })
    }
    handles.withLock { $0 = all }
  }

  func end() {
    for handle in handles.withLock({ $0 }) { reference.removeObserver(withHandle: handle) }
  }

  var eventCount: Int { state.withLock { $0.eventCount } }

  private func note(_ type: DataEventType, _ snapshot: DataSnapshot, _ previous: String?) {
    let text = Self.text(of: snapshot)
    let tick = type == .value ? snapshot.childSnapshot(forPath: "tick").int : nil
    let key = snapshot.key
    state.withLock { state in
      state.eventCount += 1
      if type == .value {
        state.value = text
        // What is told comes in the order of the writes: the counter never falls.
        if let tick {
          if tick < state.tick { state.problem = "the counter fell from \(state.tick) to \(tick)" }
          state.tick = tick
        }
        return
      }
      let old = state.children.firstIndex { $0.key == key }
      switch type {
      case .childAdded:
        if old != nil { state.problem = "\(key) was added twice" }
      default:
        guard let old else {
          state.problem = "\(type) of \(key), which was never added"
          return
        }
        state.children.remove(at: old)
      }
      if type == .childRemoved { return }
      var index = 0
      if let previous {
        guard let place = state.children.firstIndex(where: { $0.key == previous }) else {
          state.problem = "\(type) of \(key) after \(previous), which is not there"
          return
        }
        index = place + 1
      }
      state.children.insert((key, text), at: index)
    }
  }

  /// What is wrong, once all events have arrived; nil where nothing is.
  func problem(comparedWith snapshot: DataSnapshot) -> String? {
    let text = Self.text(of: snapshot)
    let children = snapshot.map { ($0.key, Self.text(of: $0)) }
    return state.withLock { state in
      if let problem = state.problem { return problem }
      switch kind {
      case .value:
        return state.value == text ? nil : "it was told another value last"
      case .children:
        let isEqual =
          state.children.count == children.count
          && zip(state.children, children).allSatisfy { $0.key == $1.0 && $0.text == $1.1 }
        return isEqual ? nil : "its events give other children, or in another order"
      }
    }
  }

  /// Everything, children in their order.
  static func text(of snapshot: DataSnapshot) -> String {
    let priority = snapshot.priority.map { "\($0)" } ?? ""
    guard snapshot.childrenCount > 0 else { return "\(snapshot.value ?? "nothing")!\(priority)" }
    return "{" + snapshot.map { "\($0.key):\(text(of: $0))" }.joined(separator: ",")
      + "}!\(priority)"
  }
}
