import Dendro
import DendroTree
import DendroTestSupport

/// A query drawn at random, both as it is asked for and as the model knows it.
struct RandomQuery {
  private(set) var parameters = QueryParameters()
  private var calls: [(DatabaseQuery) -> DatabaseQuery] = []

  /// - Parameter keys: from which bounds are drawn.
  init(_ random: inout SeededGenerator, keys: [String]) {
    drawOrder(&random)
    if random.oneIn(3) { return }
    if random.oneIn(2) { drawStart(&random, keys) }
    if random.oneIn(3) { drawEnd(&random, keys) }
    if random.oneIn(2) {
      let count = 1 + random.below(3)
      if random.oneIn(2) {
        parameters.limit = .first(count)
        calls.append { $0.queryLimited(toFirst: UInt(count)) }
      } else {
        parameters.limit = .last(count)
        calls.append { $0.queryLimited(toLast: UInt(count)) }
      }
    }
  }

  func query(of ref: DatabaseReference) -> DatabaseQuery { calls.reduce(ref) { $1($0) } }

  private mutating func drawOrder(_ random: inout SeededGenerator) {
    switch random.below(6) {
    case 0:
      parameters.order = .key
      calls.append { $0.queryOrderedByKey() }
    case 1:
      parameters.order = .value
      calls.append { $0.queryOrderedByValue() }
    case 2, 3:
      let path = random.oneIn(2) ? "a" : "b/a"
      if let parsed = try? Path(parsing: path) { parameters.order = .child(parsed) }
      calls.append { $0.queryOrdered(byChild: path) }
    default: break  // By priority, asked for by saying nothing.
    }
  }

  private mutating func drawStart(_ random: inout SeededGenerator, _ keys: [String]) {
    let isExclusive = random.oneIn(2)
    let (value, key, asked) = drawBound(&random, keys)
    parameters.start = .init(value: value, key: key, isExclusive: isExclusive)
    let keyText = parameters.order == .key ? nil : key?.string
    calls.append { query in
      switch (keyText, isExclusive) {
      case (let key?, true): query.queryStarting(afterValue: asked, childKey: key)
      case (let key?, false): query.queryStarting(atValue: asked, childKey: key)
      case (nil, true): query.queryStarting(afterValue: asked)
      case (nil, false): query.queryStarting(atValue: asked)
      }
    }
  }

  private mutating func drawEnd(_ random: inout SeededGenerator, _ keys: [String]) {
    let isExclusive = random.oneIn(2)
    let (value, key, asked) = drawBound(&random, keys)
    parameters.end = .init(value: value, key: key, isExclusive: isExclusive)
    let keyText = parameters.order == .key ? nil : key?.string
    calls.append { query in
      switch (keyText, isExclusive) {
      case (let key?, true): query.queryEnding(beforeValue: asked, childKey: key)
      case (let key?, false): query.queryEnding(atValue: asked, childKey: key)
      case (nil, true): query.queryEnding(beforeValue: asked)
      case (nil, false): query.queryEnding(atValue: asked)
      }
    }
  }

  private func drawBound(
    _ random: inout SeededGenerator, _ keys: [String]
  ) -> (SortValue, Key?, asked: Any?) {
    let keyText = keys[random.below(keys.count)]
    let key = try? Key(keyText)
    if parameters.order == .key { return (.none, key, keyText) }
    let bounded = random.oneIn(3) ? key : nil
    switch random.below(parameters.order == .priority ? 4 : 5) {
    case 0: return (.none, bounded, nil)
    case 1: return (.scalar(.integer(1)), bounded, 1)
    case 2: return (.scalar(.double(1.5)), bounded, 1.5)
    case 3: return (.scalar(.string("s")), bounded, "s")
    default: return (.scalar(.bool(true)), bounded, true)
    }
  }
}
