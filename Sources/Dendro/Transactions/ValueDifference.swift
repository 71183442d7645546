import DendroTree

/// What a typed transaction changes: the difference of two encodings of values of one type.
///
/// What stands beside the fields that both know stays: other fields, and priorities.
struct ValueDifference {
  /// What is written, by paths from the transaction's location.
  private(set) var sets: [(path: Path, value: EncodedValue)] = []
  /// Elements of arrays that stand at another place now, with all that is theirs.
  private(set) var moves: [(path: Path, from: Path)] = []
  private(set) var removals: [Path] = []
  private(set) var priorities: [(path: Path, value: EncodedValue)] = []
  /// Places that are read as something else if nothing is left there.
  private(set) var kept: [(path: Path, value: String)] = []
  /// Server values where there were the same ones: they are written if anything else is.
  private(set) var repeated: [(path: Path, value: EncodedValue)] = []
  private(set) var failure: ValidationError?

  init(from before: EncodedValue, to after: EncodedValue) {
    add(from: before, to: after, at: .root)
    if after.content.isEmpty { kept.append((.root, "value")) }
  }

  var isEmpty: Bool {
    sets.isEmpty && moves.isEmpty && removals.isEmpty && priorities.isEmpty
  }

  private mutating func add(from before: EncodedValue, to after: EncodedValue, at path: Path) {
    if case .emptied(let value, let what) = after, value.content.isEmpty {
      kept.append((path, what == .optional ? "optional" : "case of an enum"))
    }
    switch (before.content, after.content) {
    case (.keyed(let old), .keyed(let new)) where !old.isLeaf && !new.isLeaf:
      add(from: old, to: new, at: path)
    case (.unkeyed(let old), .unkeyed(let new)):
      add(from: old, to: new, at: path)
    case (let old, let new):
      if !old.isEqual(to: new) {
        sets.append((path, new))
      } else if case .keyed = new {
        repeated.append((path, new))
      }
    }
  }

  // MARK: Dictionaries and types

  private mutating func add(from old: KeyedValues, to new: KeyedValues, at path: Path) {
    if let name = new.misplacedName {
      failure = failure ?? ValidationError(.invalidData, "the key \(name) could not be read back")
    }
    let before = old.byName
    let after = new.byName
    for (name, value) in after {
      guard let path = appending(name, to: path) else { continue }
      if let before = before[name] {
        add(from: before, to: value, at: path)
      } else if !value.content.isEmpty {
        sets.append((path, value))
      }
      if value.content.isEmpty, new.hasAnyNames {
        kept.append((path, "key"))
      } else if value.isEmptied {
        kept.append((path, "optional"))
      }
    }
    for name in before.keys where after[name] == nil {
      if let path = appending(name, to: path) { removals.append(path) }
    }
    addPriority(old.value(".priority") ?? .null, new.value(".priority") ?? .null, at: path)
  }

  private mutating func addPriority(_ old: EncodedValue, _ new: EncodedValue, at path: Path) {
    if !old.isEqual(to: new) { priorities.append((path, new)) }
    if !new.content.isEmpty { kept.append((path, "priority")) }
  }

  // MARK: Arrays

  private mutating func add(from old: UnkeyedValues, to new: UnkeyedValues, at path: Path) {
    // Where an element stands in the tree is known only of those whose order is their own.
    if old.isUnordered || new.isUnordered {
      if !EncodedValue.unkeyed(old).isEqual(to: .unkeyed(new)) {
        sets.append((path, .unkeyed(new)))
      }
      return
    }
    let (old, elements) = (old.elements, new.elements)
    let shared = min(old.count, elements.count)
    let start = (0..<shared).first { !old[$0].isEqual(to: elements[$0]) } ?? shared
    if start == old.count, start == elements.count { return }
    if let lost = new.firstLost, lost < elements.count - 1 {
      failure =
        failure
        ?? ValidationError(
          .invalidData,
          "\(lost) of an array: nothing is left of an empty value, so its element would be lost")
    }
    let tail =
      (0..<(shared - start)).first {
        !old[old.count - 1 - $0].isEqual(to: elements[elements.count - 1 - $0])
      } ?? shared - start
    let sources = Self.sources(
      of: start..<(elements.count - tail), in: elements, from: start..<(old.count - tail), in: old)
    let used = Set(sources.values)
    for index in start..<elements.count {
      let place = element(index, of: path)
      let source =
        index < elements.count - tail ? sources[index] : index - elements.count + old.count
      if let source {
        if source != index { moves.append((place, element(source, of: path))) }
      } else if old.count == elements.count, !used.contains(index) {
        add(from: old[index], to: elements[index], at: place)
      } else {
        sets.append((place, elements[index]))
      }
    }
    for index in elements.count..<max(elements.count, old.count) {
      removals.append(element(index, of: path))
    }
    if let last = elements.last, last.content.isEmpty {
      kept.append((element(elements.count - 1, of: path), "element"))
    }
  }

  /// Where elements stood before: at the same place if they are what they were, else at that of an equal one.
  private static func sources(
    of range: Range<Int>, in new: [EncodedValue], from oldRange: Range<Int>, in old: [EncodedValue]
  ) -> [Int: Int] {
    var sources: [Int: Int] = [:]
    for index in range where oldRange.contains(index) && old[index].isEqual(to: new[index]) {
      sources[index] = index
    }
    // By what they are like, the first one last.
    var places: [Int: [Int]] = [:]
    for index in oldRange.reversed() where sources[index] == nil {
      places[old[index].likeness, default: []].append(index)
    }
    for index in range where sources[index] == nil {
      let likeness = new[index].likeness
      guard let place = places[likeness]?.last, old[place].isEqual(to: new[index]) else { continue }
      places[likeness]?.removeLast()
      sources[index] = place
    }
    return sources
  }

  private func element(_ index: Int, of path: Path) -> Path {
    guard let key = try? Key(String(index)) else { fatalError("digits are a key") }
    return path.appending(key)
  }

  private mutating func appending(_ name: Scalar, to path: Path) -> Path? {
    guard let name = name.string else { return nil }
    do throws(ValidationError) {
      return path.appending(try Key(name))
    } catch {
      failure = failure ?? error
      return nil
    }
  }
}

extension TransactionDraft {
  /// Writes the difference of two values of a type at the transaction's location; nil is nothing.
  func change(from before: EncodedValue?, to after: EncodedValue?) {
    guard let after else {
      if before != nil { set(nil, at: .root) }
      return
    }
    guard let before else {
      check(after, at: .root)
      return set(after, at: .root)
    }
    let difference = ValueDifference(from: before, to: after)
    if let failure = difference.failure { return fail(failure) }
    // Read before anything takes their places.
    let moved = difference.moves.map { (path: $0.path, node: node(at: $0.from)) }
    for (path, node) in moved where !node.isEmpty { set(node, at: path) }
    // Times alone are no change.
    let repeated = difference.isEmpty ? [] : difference.repeated
    let sets = difference.sets + repeated
    for (path, value) in sets where !value.content.isEmpty {
      let priority = node(at: path).priority
      set(value, at: path)
      if let priority, !value.hasPriority { setPriority(priority.foundationValue, at: path) }
    }
    // What empties a place comes last, since what has no children any more loses its priority.
    for (path, value) in sets where value.content.isEmpty { set(value, at: path) }
    for (path, node) in moved where node.isEmpty { set(node, at: path) }
    for path in difference.removals { set(nil, at: path) }
    for (path, value) in difference.priorities { setPriority(from: value, at: path) }
    for (path, noun) in difference.kept where node(at: path).isEmpty {
      return fail(
        ValidationError(
          .invalidData,
          "at \(location.appending(path)): nothing is left of an empty value, so the \(noun) would be lost"
        ))
    }
  }
}

extension EncodedValue {
  /// What it is, whether or not it may be empty.
  fileprivate var content: EncodedValue {
    switch self {
    case .encoder(let encoder): encoder.result.content
    case .emptied(let value, _): value.content
    default: self
    }
  }

  fileprivate var isEmptied: Bool { if case .emptied = self { true } else { false } }

  fileprivate var hasPriority: Bool {
    if case .keyed(let values) = content { values.value(".priority") != nil } else { false }
  }

  /// The same for all that are equal.
  fileprivate var likeness: Int {
    var hasher = Hasher()
    switch content {
    case .scalar(let scalar): hasher.combine(scalar)
    case .unsigned(let value): hasher.combine(value)
    case .decimal(let value): hasher.combine(value)
    case .unkeyed(let values): for element in values.elements { hasher.combine(element.likeness) }
    case .keyed(let values):
      hasher.combine(
        values.byName.reduce(0) { sum, entry in
          var hasher = Hasher()
          hasher.combine(entry.key)
          hasher.combine(entry.value.likeness)
          return sum ^ hasher.finalize()
        })
    case .null, .foreign, .encoder, .emptied: break
    }
    return hasher.finalize()
  }

  /// Whether both encode the same.
  fileprivate func isEqual(to other: EncodedValue) -> Bool {
    switch (content, other.content) {
    case (.null, .null): true
    case (.scalar(let a), .scalar(let b)): a == b
    case (.unsigned(let a), .unsigned(let b)): a == b
    case (.decimal(let a), .decimal(let b)): a == b
    case (.keyed(let a), .keyed(let b)): a.isEqual(to: b)
    case (.unkeyed(let a), .unkeyed(let b)):
      a.elements.count == b.elements.count
        && zip(a.elements, b.elements).allSatisfy { $0.isEqual(to: $1) }
    default: false
    }
  }
}

extension KeyedValues {
  /// Whether it stands for something else than children: a server value.
  fileprivate var isLeaf: Bool {
    hasMetadata && (value(".sv") != nil || value(".value") != nil)
  }

  /// Without what is no data. `Scalar` compares strings literally, as the tree does.
  fileprivate var byName: [Scalar: EncodedValue] {
    Dictionary(
      entries.lazy.filter { !self.hasMetadata || !ValueReader.isMetadata($0.name) }
        .map { (.string($0.name), $0.value) }, uniquingKeysWith: { $1 })
  }

  fileprivate func isEqual(to other: KeyedValues) -> Bool {
    guard hasMetadata == other.hasMetadata else { return false }
    if hasMetadata {
      for name in [".sv", ".value", ".priority"] {
        guard (value(name) ?? .null).isEqual(to: other.value(name) ?? .null) else { return false }
      }
    }
    let (a, b) = (byName, other.byName)
    return a.count == b.count
      && a.allSatisfy { name, value in
        b[name]?.isEqual(to: value) ?? false
      }
  }
}
