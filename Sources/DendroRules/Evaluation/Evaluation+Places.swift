import DendroTree

extension Evaluation {
  /// What is at a place; read now, if nothing asked before.
  mutating func view(_ place: Int) -> Source.View {
    if let view = places[place].view { return view }
    let found: Source.View
    if let key = places[place].key {
      found = view(Int(places[place].parent)).child(key)
    } else {
      found = .nothing
    }
    places[place].view = found
    return found
  }

  /// The keys from the root; nil for an impossible location.
  func keys(_ place: Int) -> [Key]? {
    var keys: [Key] = []
    var current = place
    while places[current].parent >= 0 {
      guard let key = places[current].key else { return nil }
      keys.append(key)
      current = Int(places[current].parent)
    }
    return keys.reversed()
  }

  /// The location with these keys, for traces.
  static func location(_ keys: [Key]?) -> String {
    keys.map { "/" + $0.map(\.string).joined(separator: "/") } ?? "an impossible location"
  }

  // MARK: Looking

  /// Each of these notes what it saw, if observations were asked for.

  mutating func exists(_ place: Int) -> Bool {
    let exists = view(place).kind != .nothing
    note(place, .existence(exists))
    return exists
  }

  mutating func kind(_ place: Int) -> DataKind {
    let kind = view(place).kind
    note(place, .kind(kind))
    return kind
  }

  mutating func hasAnyChild(_ place: Int) -> Bool {
    let result = view(place).kind == .object
    note(place, .children(result))
    return result
  }

  mutating func value(_ place: Int) -> Value {
    let view = view(place)
    if let scalar = view.scalar {
      note(place, .value(scalar))
      return Value(scalar)
    }
    let kind = view.kind
    note(place, .kind(kind))
    return kind == .nothing ? .null : .unusable
  }

  mutating func priority(_ place: Int) -> Value {
    guard let keys = keys(place) else { return .null }
    let priority = (places[place].isNew ? new : old).priority(at: keys)
    note(place, .priority(priority))
    return priority.map { Value($0) } ?? .null
  }

  @inline(__always)
  private mutating func note(_ place: Int, _ sight: RuleObservations.Sight) {
    guard observer != nil else { return }
    observe(place, sight)
  }

  @inline(never)
  private mutating func observe(_ place: Int, _ sight: RuleObservations.Sight) {
    // Nothing can ever be at an impossible location.
    guard let keys = keys(place) else { return }
    observer?.note(Path(keys: keys), isNew: places[place].isNew, sight)
  }

  // MARK: Moving

  /// The place of a child.
  private mutating func child(_ place: Int, _ key: Key?) throws(Failure) -> Int {
    let (isNew, depth) = (places[place].isNew, places[place].depth)
    guard depth < RuleLimits.depth else { throw .deepLocation }
    let parent = Int32(truncatingIfNeeded: place)
    places.append(Place(view: nil, key: key, parent: parent, isNew: isNew, depth: depth + 1))
    return places.count - 1
  }

  mutating func child(_ place: Int, at path: ConstantPath) throws(Failure) -> Int {
    guard let keys = path.keys else { return try child(place, nil) }
    return try child(place, at: keys)
  }

  private mutating func child(_ place: Int, at keys: some Sequence<Key>) throws(Failure) -> Int {
    var place = place
    for key in keys {
      stepsLeft &-= 1
      guard stepsLeft >= 0 else { throw .steps }
      place = try child(place, key)
    }
    return place
  }

  mutating func child(_ place: Int, atPath text: String) throws(Failure) -> Int {
    try work(on: text, bytesPerStep: 256)
    guard let path = try? Path(parsing: text) else { return try child(place, nil) }
    return try child(place, at: path.keys)
  }

  mutating func parent(_ place: Int) throws(Failure) -> Int {
    guard places[place].parent >= 0 else { throw .parentOfRoot }
    return Int(places[place].parent)
  }
}
