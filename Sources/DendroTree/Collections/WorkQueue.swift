/// Work that is done in order by drains, of which there is one at a time. The lock of its owner guards it.
public struct WorkQueue<Work> {
  @usableFromInline var waiting = Queue<Work>()
  @usableFromInline var isDrained = false

  /// Makes a queue without work.
  @inlinable public init() {}

  /// Whether there is a drain, which does what waits.
  @inlinable public var hasDrain: Bool { isDrained }

  /// The pieces that wait.
  @inlinable public var count: Int { waiting.count }

  /// Adds a piece behind the others.
  @inlinable public mutating func append(_ work: Work) { waiting.append(work) }

  /// Whether there is work and no drain.
  @inlinable public var needsDrain: Bool { !hasDrain && !waiting.isEmpty }

  /// Whether all work is done, and no drain is about to do some.
  @inlinable public var isIdle: Bool { !hasDrain && waiting.isEmpty }

  /// Notes that there is a drain if one is needed. The caller dispatches it.
  @inlinable public mutating func beginDrain() -> Bool {
    guard needsDrain else { return false }
    isDrained = true
    return true
  }

  /// Takes the next pieces of work. If none waits, the drain has ended.
  ///
  /// - Parameters:
  ///   - limit: the most pieces that are taken.
  ///   - take: gets a piece; returns whether one behind it may be taken together with it.
  /// - Returns: the number of pieces.
  @inlinable public mutating func take(atMost limit: Int = .max, _ take: (consuming Work) -> Bool)
    -> Int
  {
    var count = 0
    while count < limit, let work = waiting.popFirst() {
      count += 1
      guard take(work) else { break }
    }
    if count == 0 { isDrained = false }
    return count
  }

  /// Replaces what waits.
  @inlinable public mutating func replace(_ body: (_ waiting: [Work]) -> [Work]) {
    var old: [Work] = []
    waiting.removeAll(into: &old)
    for work in body(old) { waiting.append(work) }
  }
}
