import DendroTree
import Foundation
import Synchronization

/// The tree that all `MutableData`s of one run of a transaction's block read and change.
///
/// Increments are added to the run's input as soon as they are set, since the transaction is admitted on
/// that very input or not at all; the time is known only at admission. The lock is for blocks that pass a
/// `MutableData` to other threads.
final class TransactionDraft: Sendable {
  /// Of the transaction.
  let location: Path
  private let input: Node
  private let state: Mutex<State>

  fileprivate struct State {
    /// Has a stand-in leaf or priority where a timestamp is to come.
    var node: Node
    /// From the transaction's location.
    var timestamps = DeferredValues()
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
    return content.timestamps.shown(in: content.node.foundationValue)
  }

  /// The leaf; nil if there is none, or the time of the write is to come.
  func scalar(at path: Path) -> Scalar? {
    let content = content(at: path)
    return content.timestamps.value == nil ? content.node.scalar : nil
  }

  func priority(at path: Path) -> Any {
    let content = content(at: path)
    if content.timestamps.priority != nil { return ServerValue.timestamp() }
    return content.node.priority?.foundationValue ?? NSNull()
  }

  private func content(at path: Path) -> (node: Node, timestamps: DeferredValues) {
    state.withLock { ($0.node.node(at: path), $0.timestamps.part(at: path)) }
  }

  // MARK: Changing

  func set(_ value: Any?, at path: Path) {
    set(at: path) { (reader) throws(ValidationError) in
      if let value { try reader.read(value) }
    }
  }

  func set(_ value: EncodedValue, at path: Path) {
    set(at: path) { (reader) throws(ValidationError) in try reader.read(value) }
  }

  func set(_ node: Node, at path: Path) {
    state.withLock { state in
      state.node.graft(node, at: path)
      state.timestamps.replace(at: path, by: DeferredValues([], in: node), in: state.node)
    }
  }

  /// Refuses a value that could not be read as what it is.
  func check(_ value: EncodedValue, at path: Path) {
    change { () throws(ValidationError) in
      try checkDepth(of: path)
      var reader = ValueReader(at: location.appending(path))
      try reader.readWhole(value)
      return { _ in }
    }
  }

  private func set(
    at path: Path, _ read: (inout ValueReader) throws(ValidationError) -> Void
  ) {
    change { () throws(ValidationError) in
      try checkDepth(of: path)
      let (new, deferred) = try self.read(at: path, read)
      return { [input] state in
        state.node.graft(new, at: path)
        let timestamps = state.adding(deferred, to: input).map { item in
          Draft.Deferred(
            path: item.path.dropFirst(path.count), isPriority: item.isPriority, value: item.value)
        }
        state.timestamps.replace(
          at: path, by: DeferredValues(timestamps, in: state.node.node(at: path)), in: state.node)
      }
    }
  }

  /// The node of a value, and its server values by their paths from the transaction's location.
  private func read(
    at path: Path, _ read: (inout ValueReader) throws(ValidationError) -> Void
  ) throws(ValidationError) -> (node: Node, deferred: [Draft.Deferred]) {
    var reader = ValueReader(at: location.appending(path))
    try read(&reader)
    let (node, deferred) = reader.builder.node
    return (
      node,
      deferred.map { item in
        Draft.Deferred(
          path: path.appending(item.path), isPriority: item.isPriority, value: item.value)
      }
    )
  }

  func setPriority(_ priority: Any?, at path: Path) {
    change { () throws(ValidationError) in
      let reader = ValueReader(at: location.appending(path))
      let scalar: Scalar?
      var deferred: [Draft.Deferred] = []
      switch try reader.priority(priority) {
      case .nothing: scalar = nil
      case .scalar(let given): scalar = given
      case .serverValue(let value):
        scalar = Draft.Deferred.standIn
        deferred.append(Draft.Deferred(path: path, isPriority: true, value: value))
      }
      return { [input, deferred] state in
        let existing = state.node.node(at: path)
        guard !existing.isEmpty else { return }
        state.node.graft(existing.settingPriority(scalar), at: path)
        let timestamp = state.adding(deferred, to: input).first?.value
        state.timestamps.replacePriority(at: path, by: timestamp)
      }
    }
  }

  func setPriority(from value: EncodedValue, at path: Path) {
    do throws(ValidationError) {
      setPriority(try ValueReader(at: location.appending(path)).place.exact(value), at: path)
    } catch {
      fail(error)
    }
  }

  /// The first error stays, and ends the transaction.
  func fail(_ error: ValidationError) {
    state.withLock { state in
      if state.error == nil { state.error = DatabaseError(error) }
    }
  }

  private typealias Changing = (inout State) -> Void

  /// - Parameter prepare: reads what was given, outside the lock, and returns what to do under it.
  private func change(_ prepare: () throws(ValidationError) -> Changing) {
    do throws(ValidationError) {
      let apply = try prepare()
      state.withLock { apply(&$0) }
    } catch {
      fail(error)
    }
  }

  private func checkDepth(of path: Path) throws(ValidationError) {
    guard location.count + path.count > Limits.depth else { return }
    throw ValidationError(
      .invalidData, "at \(location.appending(path)): the data is deeper than \(Limits.depth) levels"
    )
  }

  // MARK: The outcome

  var error: DatabaseError? { state.withLock { $0.error } }

  /// What is at `path` here, as the write of it to `location`.
  func write(of path: Path, to location: Path) -> Draft {
    let content = content(at: path)
    if content.node.isEmpty { return Draft(.remove(location)) }
    return Draft(.set(location, content.node), deferred: content.timestamps.list)
  }
}

extension TransactionDraft.State {
  /// Adds the increments among server values, from the transaction's location, to what was there.
  ///
  /// - Returns: the timestamps.
  fileprivate mutating func adding(_ deferred: [Draft.Deferred], to input: Node)
    -> [Draft.Deferred]
  {
    var timestamps: [Draft.Deferred] = []
    var increments: [Draft.Deferred] = []
    for item in deferred {
      if case .timestamp = item.value { timestamps.append(item) } else { increments.append(item) }
    }
    // The time is not looked at: there are none but increments.
    let sums = Draft(.set(.root, node), deferred: increments).resolved(time: 0, against: input)
    if case .set(_, let filled) = sums { node = filled }
    return timestamps
  }
}

extension DeferredValues {
  /// A node's value in Foundation's types, with a timestamp where one is to come.
  fileprivate func shown(in value: Any) -> Any {
    if self.value != nil { return ServerValue.timestamp() }
    if children.isEmpty { return value }
    if var dictionary = value as? [String: Any] {
      for (key, child) in children {
        if let part = dictionary[key.string] { dictionary[key.string] = child.shown(in: part) }
      }
      return dictionary
    }
    if var array = value as? [Any] {
      for (key, child) in children {
        if let index = key.arrayIndex, index < array.count {
          array[index] = child.shown(in: array[index])
        }
      }
      return array
    }
    return value
  }
}
