import DendroTree
import Foundation
import Synchronization

/// What one run of a transaction's block works on: the tree that all its `MutableData`s look at.
///
/// Increments are added to the run's input as soon as they are set, since the transaction is admitted on
/// that very input or not at all; the time is known only at admission. The lock is for whoever hands a
/// view to other threads: what they do then is done in some order.
final class TransactionDraft: Sendable {
  /// Of the transaction.
  let location: Path
  private let input: Node
  private let state: Mutex<State>

  fileprivate struct State {
    /// Has a stand-in leaf or priority where a timestamp is to come.
    var node: Node
    /// The places of the timestamps, from the transaction's location.
    var timestamps: [Draft.Deferred] = []
    var error: DatabaseError?
  }

  init(at location: Path, input: Node) {
    self.location = location
    self.input = input
    state = Mutex(State(node: input))
  }

  // MARK: Reading

  func node(at path: Path) -> Node { state.withLock { $0.node.node(at: path) } }

  /// What `MutableData.value` shows: timestamps as they were set.
  func value(at path: Path) -> Any {
    let content = content(at: path)
    let value = content.node.foundationValue
    return content.timestamps.lazy.filter { !$0.isPriority }
      .reduce(value) { Self.timestamp(in: $0, at: $1.path.keys.map { $0 }[...]) }
  }

  func priority(at path: Path) -> Any {
    let content = content(at: path)
    if content.timestamps.contains(where: { $0.isPriority && $0.path.isRoot }) {
      return ServerValue.timestamp()
    }
    return content.node.priority?.foundationValue ?? NSNull()
  }

  private func content(at path: Path) -> (node: Node, timestamps: [Draft.Deferred]) {
    state.withLock { state in
      let timestamps = state.timestamps.compactMap { item -> Draft.Deferred? in
        guard let relative = item.path.relative(to: path) else { return nil }
        return Draft.Deferred(path: relative, isPriority: item.isPriority, value: item.value)
      }
      return (state.node.node(at: path), timestamps)
    }
  }

  private static func timestamp(in value: Any, at keys: ArraySlice<Key>) -> Any {
    guard let key = keys.first else { return ServerValue.timestamp() }
    if var dictionary = value as? [String: Any], let child = dictionary[key.string] {
      dictionary[key.string] = timestamp(in: child, at: keys.dropFirst())
      return dictionary
    }
    if var array = value as? [Any], let index = key.arrayIndex, index < array.count {
      array[index] = timestamp(in: array[index], at: keys.dropFirst())
      return array
    }
    return value
  }

  // MARK: Changing

  func set(_ value: Any?, at path: Path) {
    change { () throws(ValidationError) in
      try checkDepth(of: path)
      var reader = ValueReader(outerDepth: location.count + path.count, prefix: path)
      let new = try value.map { value throws(ValidationError) in try reader.node(value) } ?? .empty
      return { state in
        state.timestamps.removeAll { path.isPrefix(of: $0.path) }
        state.node.graft(new, at: path)
        return reader.deferred
      }
    }
  }

  func setPriority(_ priority: Any?, at path: Path) {
    change { () throws(ValidationError) in
      var reader = ValueReader(outerDepth: location.count + path.count, prefix: path)
      let scalar = try reader.priority(priority)
      return { state in
        let existing = state.node.node(at: path)
        guard !existing.isEmpty else { return [] }
        state.timestamps.removeAll { $0.isPriority && $0.path == path }
        state.node.graft(existing.settingPriority(scalar), at: path)
        return reader.deferred
      }
    }
  }

  /// The first error stays, and ends the transaction.
  func fail(_ error: ValidationError) {
    state.withLock { state in
      if state.error == nil { state.error = DatabaseError(error) }
    }
  }

  private typealias Changing = (inout State) -> [Draft.Deferred]

  /// - Parameter prepare: reads what was given, outside the lock, and returns what to do under it: which
  ///   returns the server values that came with it.
  private func change(_ prepare: () throws(ValidationError) -> Changing) {
    do throws(ValidationError) {
      let apply = try prepare()
      state.withLock { state in
        let deferred = apply(&state)
        state.fill(deferred, input: input)
      }
    } catch {
      fail(error)
    }
  }

  private func checkDepth(of path: Path) throws(ValidationError) {
    guard location.count + path.count > Limits.depth else { return }
    throw ValidationError(
      .invalidData, "at \(path): the data goes deeper than \(Limits.depth) levels")
  }

  // MARK: The outcome

  var error: DatabaseError? { state.withLock { $0.error } }

  /// What is at `path` here, as the write of it to `location`.
  func write(of path: Path, to location: Path) -> Draft {
    let content = content(at: path)
    if content.node.isEmpty { return Draft(.remove(location)) }
    return Draft(.set(location, content.node), deferred: content.timestamps)
  }
}

extension TransactionDraft.State {
  /// Adds the increments, and keeps the timestamps that are still there.
  fileprivate mutating func fill(_ deferred: [Draft.Deferred], input: Node) {
    var increments: [Draft.Deferred] = []
    for item in deferred {
      if case .timestamp = item.value { timestamps.append(item) } else { increments.append(item) }
    }
    // The time is not looked at: there are none but increments.
    let sums = Draft(.set(.root, node), deferred: increments).resolved(time: 0, against: input)
    if case .set(_, let filled) = sums { node = filled }
    timestamps.removeAll { item in
      let place = node.node(at: item.path)
      return item.isPriority ? place.priority == nil : !place.isLeaf
    }
  }
}
