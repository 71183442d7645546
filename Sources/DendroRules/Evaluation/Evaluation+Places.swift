import DendroTree

extension Evaluation {
  /// What is at a place; read now, if nothing asked before.
  @inline(__always)
  mutating func view(_ place: Int) -> Source.View {
    if let view = places[place].view { return view }
    return look(place)
  }

  private mutating func look(_ place: Int) -> Source.View {
    let parent = Int(places[place].parent)
    let found: Source.View
    switch places[place].key {
    case .none: found = .nothing
    case .constant(let key): found = view(parent).child(program.pathKeys[Int(key)])
    case .own(let key): found = view(parent).child(ownKeys[Int(key)])
    }
    places[place].view = found
    return found
  }

  /// The keys from the root; nil for an impossible location.
  func keys(_ place: Int) -> [Key]? {
    var keys: [Key] = []
    var current = place
    while places[current].parent >= 0 {
      switch places[current].key {
      case .none: return nil
      case .constant(let key): keys.append(program.pathKeys[Int(key)])
      case .own(let key): keys.append(ownKeys[Int(key)])
      }
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
    let isNew = places[place].isNew
    observer?.note(Path(keys: keys), isNew: isNew, sight)
  }

  /// Notes which children there are, since each of them was judged.
  mutating func noteKeys(_ place: Int) {
    guard observer != nil else { return }
    var keys: [Key] = []
    view(place).forEachChild { key, _ in
      keys.append(key)
      return true
    }
    observe(place, .keys(keys.sorted()))
  }

  // MARK: Moving

  /// The place of a child.
  private mutating func child(_ place: Int, _ key: KeyIndex) throws(Failure) -> Int {
    let (isNew, depth) = (places[place].isNew, places[place].depth)
    guard depth < RuleLimits.depth else { throw .deepLocation }
    let parent = Int32(truncatingIfNeeded: place)
    places.append(Place(view: nil, key: key, parent: parent, depth: depth &+ 1, isNew: isNew))
    return places.count &- 1
  }

  /// The place at a path that the rules spell out.
  mutating func child(_ place: Int, at path: Int) throws(Failure) -> Int {
    let path = program.paths[path]
    if path.count < 0 { return try child(place, .none) }
    var place = place
    for index in path.first..<path.first &+ path.count {
      stepsLeft &-= 1
      guard stepsLeft >= 0 else { throw .steps }
      place = try child(place, .constant(index))
    }
    return place
  }

  /// The place at a path that an expression made.
  mutating func child(_ place: Int, atPath text: String) throws(Failure) -> Int {
    try work(on: text, bytesPerStep: 256)
    if let key = try? Key(text) { return try child(place, own: key) }
    guard let path = try? Path(parsing: text) else { return try child(place, .none) }
    var place = place
    for key in path.keys { place = try child(place, own: key) }
    return place
  }

  private mutating func child(_ place: Int, own key: Key) throws(Failure) -> Int {
    stepsLeft &-= 1
    guard stepsLeft >= 0 else { throw .steps }
    ownKeys.append(key)
    return try child(place, .own(Int32(truncatingIfNeeded: ownKeys.count &- 1)))
  }

  func parent(_ place: Int) throws(Failure) -> Int {
    guard places[place].parent >= 0 else { throw .parentOfRoot }
    return Int(places[place].parent)
  }
}
