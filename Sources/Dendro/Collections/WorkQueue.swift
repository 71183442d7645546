/// Work that is done in order by drains, of which there is one at a time. The lock of its owner guards it.
package struct WorkQueue<Work> {
  private var waiting = Queue<Work>()
  /// Whether there is a drain, which does what waits.
  package private(set) var hasDrain = false

  package init() {}

  package var count: Int { waiting.count }

  package mutating func append(_ work: Work) { waiting.append(work) }

  /// Whether there is work and no drain.
  package var needsDrain: Bool { !hasDrain && !waiting.isEmpty }

  /// Notes that there is a drain if one is needed. The caller dispatches it.
  package mutating func beginDrain() -> Bool {
    guard needsDrain else { return false }
    hasDrain = true
    return true
  }

  /// Takes the next pieces of work. Where none waits, the drain has ended.
  ///
  /// - Parameter take: gets a piece; returns whether one behind it may be taken together with it.
  /// - Returns: the number of pieces.
  package mutating func take(atMost limit: Int = .max, _ take: (consuming Work) -> Bool) -> Int {
    var count = 0
    while count < limit, let work = waiting.popFirst() {
      count += 1
      guard take(work) else { break }
    }
    if count == 0 { hasDrain = false }
    return count
  }

  /// Replaces what waits.
  package mutating func replace(_ body: (_ waiting: [Work]) -> [Work]) {
    var old: [Work] = []
    waiting.removeAll(into: &old)
    for work in body(old) { waiting.append(work) }
  }
}
