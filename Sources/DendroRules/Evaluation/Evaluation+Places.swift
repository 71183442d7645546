import DendroTree

extension Evaluation {
  /// What is at a place; read now, if nothing asked before.
  @inline(__always)
  mutating func view(_ place: Int) -> Source.View {
    if let view = places[place].view { return view }
    return look(place)
  }

  private mutating func look(_ place: Int) -> Source.View {
    var found = Source.View.nothing
    if let key = places[place].key {
      // The places of a level come in pairs.
      let isOfLevel = places[place].isNew && place < 2 &* levels.count
      found = view(Int(places[place].parent))
        .child(key, before: isOfLevel ? places[place &- 1].view : nil)
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
      keys.append(key.key)
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
    let exists = !view(place).isEmpty
    if isObserving { note(place, exists ? .exists : .doesNotExist) }
    return exists
  }

  mutating func kind(_ place: Int) -> DataKind {
    let kind = view(place).kind
    if isObserving { note(place, Sight(kind)) }
    return kind
  }

  mutating func hasAnyChild(_ place: Int) -> Bool {
    let result = view(place).kind == .object
    if isObserving { note(place, result ? .hasChildren : .hasNoChildren) }
    return result
  }

  mutating func value(_ place: Int) -> Value {
    let value = view(place).value(in: &texts)
    if isObserving { noteValue(place, value) }
    return value
  }

  mutating func priority(_ place: Int) -> Value {
    guard let keys = keys(place) else { return .null }
    let priority = (places[place].isNew ? new : old).priority(at: Path(keys: keys))
    let value = Value(priority, keptIn: &texts)
    if isObserving { note(place, .priority, value) }
    return value
  }

  // MARK: Moving

  /// The place of a child.
  private mutating func child(_ place: Int, _ key: KeyView?) throws(Failure) -> Int {
    let (isNew, depth) = (places[place].isNew, places[place].depth)
    guard depth < RuleLimits.depth else { throw .deepLocation }
    let parent = Int32(truncatingIfNeeded: place)
    places.append(Place(view: nil, isNew: isNew, depth: depth &+ 1, parent: parent, key: key))
    return places.count &- 1
  }

  /// The place at a path that the rules spell out.
  mutating func child(_ place: Int, at path: Int) throws(Failure) -> Int {
    let path = program.paths[path]
    if path.count < 0 { return try child(place, nil) }
    var place = place
    for index in path.first..<path.first &+ path.count {
      place = try step(place, program.pathKeys[Int(index)])
    }
    return place
  }

  /// The place at a path that an expression made.
  mutating func child(_ place: Int, atPath text: Text) throws(Failure) -> Int {
    try work(on: text, bytesPerStep: 256)
    let start = texts.allocate(Path.storedByteCountMax(ofTextOf: text.count))
    guard let byteCount = Path.store(utf8: text.bytes, to: start) else {
      texts.shrink(to: start)
      return try child(place, nil)
    }
    texts.shrink(to: start + byteCount)
    var place = place
    let path = UnsafeRawBufferPointer(start: start, count: byteCount)
    for key in KeyViews(storedPath: path) { place = try step(place, key) }
    return place
  }

  private mutating func step(_ place: Int, _ key: KeyView) throws(Failure) -> Int {
    stepsLeft &-= 1
    guard stepsLeft >= 0 else { throw .steps }
    return try child(place, key)
  }

  func parent(_ place: Int) throws(Failure) -> Int {
    guard places[place].parent >= 0 else { throw .parentOfRoot }
    return Int(places[place].parent)
  }
}
