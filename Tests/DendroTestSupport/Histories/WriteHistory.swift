package import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// What clients of several servers did and were told, held against the log of all writes.
///
/// Each write sets `register` to a value that no other one has, and adds 1 to `count` beside it.
package final class WriteHistory: Sendable {
  package struct Operation: Sendable {
    package enum Outcome: Sendable { case acknowledged, refused, undecided }

    package let value: Int
    package let begun: ContinuousClock.Instant
    package let ended: ContinuousClock.Instant
    package let outcome: Outcome

    /// An operation that has just ended.
    package init(_ value: Int, begun: ContinuousClock.Instant, _ outcome: Outcome) {
      self.init(value, begun: begun, ended: .now, outcome)
    }

    package init(
      _ value: Int, begun: ContinuousClock.Instant, ended: ContinuousClock.Instant,
      _ outcome: Outcome
    ) {
      self.value = value
      self.begun = begun
      self.ended = ended
      self.outcome = outcome
    }
  }

  private let state = Mutex((operations: [Operation](), acknowledgedCount: 0, next: 0))

  package init() {}

  package var operations: [Operation] { state.withLock { $0.operations } }
  package var acknowledgedCount: Int { state.withLock { $0.acknowledgedCount } }

  /// A value that no other write has.
  package func newValue() -> Int {
    state.withLock { state in
      state.next += 1
      return state.next
    }
  }

  package func add(_ operation: Operation) {
    state.withLock { state in
      state.operations.append(operation)
      if operation.outcome == .acknowledged { state.acknowledgedCount += 1 }
    }
  }

  /// The longest time from a moment on in which no write was acknowledged.
  package func longestPause(since moment: ContinuousClock.Instant) -> Duration {
    var last = moment
    var longest = Duration.zero
    let ends = operations.filter { $0.outcome == .acknowledged && $0.ended > moment }.map(\.ended)
    for end in ends.sorted() {
      longest = max(longest, end - last)
      last = end
    }
    return longest
  }

  // MARK: Judging

  /// The order of all writes, as a log has it.
  package struct Order: Sendable {
    /// The number of the write of each value.
    private let lsns: [Int: UInt64]

    package init(_ lsns: [Int: UInt64]) { self.lsns = lsns }

    package var count: Int { lsns.count }

    package subscript(_ value: Int) -> UInt64? { lsns[value] }

    /// Reads the whole log of a database.
    ///
    /// - Returns: the order, or what is wrong with the log.
    package static func read(_ engine: Engine) throws -> (order: Order, problem: String?) {
      var lsns: [Int: UInt64] = [:]
      var problem: String?
      let last = engine.head.lsn
      let reader = try engine.changes(since: .zero)
      while reader.position < last {
        for write in try reader.page(upTo: last) {
          guard case .update(_, let entries) = write.write else { continue }
          for entry in entries where "\(entry.path)".hasSuffix("register") {
            guard case .set(let node) = entry.action, case .integer(let value)? = node.scalar
            else { continue }
            let before = lsns.updateValue(write.lsn.rawValue, forKey: Int(value))
            if let before, problem == nil {
              problem = "\(value) is there twice: as write \(before), and as \(write.lsn)"
            }
          }
        }
      }
      return (Order(lsns), problem)
    }

    /// Whether a session that saw these values, one after the other, saw time go forward, and only what stands.
    ///
    /// - Returns: what is wrong; nil if nothing is.
    package func problem(ofSession values: [Int]) -> String? {
      var last: (value: Int, lsn: UInt64)?
      for value in values {
        guard let lsn = lsns[value] else { return "\(value) was seen and does not stand" }
        if let last, lsn < last.lsn {
          return "\(value) was seen after \(last.value), and is older: \(lsn) and \(last.lsn)"
        }
        last = (value, lsn)
      }
      return nil
    }
  }

  /// Whether one order of all writes explains what the clients were told: what was acknowledged stands, what was refused
  /// does not, and what had ended before another write began comes before that.
  ///
  /// - Returns: what is wrong; nil if nothing is.
  package func problem(in order: Order) -> String? {
    let operations = operations
    for operation in operations {
      switch operation.outcome {
      case .acknowledged where order[operation.value] == nil:
        return "\(operation.value) was acknowledged and is lost"
      case .refused where order[operation.value] != nil:
        return "\(operation.value) was refused and stands"
      default: break
      }
    }
    let ended = operations.filter { $0.outcome == .acknowledged }.sorted { $0.ended < $1.ended }
    var highest: (value: Int, lsn: UInt64) = (0, 0)
    var next = 0
    for operation in operations.sorted(by: { $0.begun < $1.begun }) {
      while next < ended.count, ended[next].ended < operation.begun {
        let (value, lsn) = (ended[next].value, order[ended[next].value] ?? 0)
        if lsn > highest.lsn { highest = (value, lsn) }
        next += 1
      }
      if let lsn = order[operation.value], lsn <= highest.lsn {
        return "\(operation.value) began after \(highest.value) had ended, and comes before it"
      }
    }
    return nil
  }
}
