import Dendro
import Dispatch
import Foundation
import DendroTestSupport
import Testing

/// What the writers write, and what is known of it.
///
/// Each write counts `count` and its writer's own number up by one, in one update. So `count` is the
/// place of a write in the order of commits, and every state that ever was is whole: `count` is the sum
/// of the others. An observer's events can be compared with that, whichever writers came in between.
final class LoadBoard: Sendable {
  static let writerCount = 4
  static let observerCount = 8
  /// How often each observer attaches and detaches while there are writes.
  static let roundCount = 6

  let database: Database
  let list: DatabaseReference
  /// Whether no observer falls so far behind that states are left out.
  let isHeldBack: Bool
  private let state = Shared(State())

  private struct State {
    /// The numbers of the writers at each place of the order, as the first observer got them.
    var orders: [Int: [Int]] = [:]
    var violations: [String] = []
    var eventCount = 0
    /// How often each observer attached and detached again.
    var roundCounts = Array(repeating: 0, count: LoadBoard.observerCount)
    var writersLeft = LoadBoard.writerCount
    var writtenCount = 0
  }

  init(_ database: Database, isHeldBack: Bool) {
    self.database = database
    self.isHeldBack = isHeldBack
    list = database.reference(withPath: "list")
    var zeros = ["count": 0]
    for writer in 0..<Self.writerCount { zeros["w\(writer)"] = 0 }
    list.setValue(zeros)
  }

  var violations: [String] { state.withLock { $0.violations } }
  var eventCount: Int { state.withLock { $0.eventCount } }
  var writtenCount: Int { state.withLock { $0.writtenCount } }
  var isWritten: Bool { state.withLock { $0.writersLeft == 0 } }
  private var isWatchedEnough: Bool {
    state.withLock { $0.roundCounts.allSatisfy { $0 >= Self.roundCount } }
  }

  func violate(_ text: String) { state.withLock { $0.violations.append(text) } }
  func countEvent() { state.withLock { $0.eventCount += 1 } }
  func countRound(_ observer: Int) { state.withLock { $0.roundCounts[observer] += 1 } }

  /// Writes on a thread of its own, in bursts, until all observers have attached and detached often enough.
  /// At no time more may wait than each consumer's bound.
  func write(_ writer: Int) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [self] in
        var number = 0
        repeat {
          // The bound of a consumer is 64 states. Held back, 16 of these wait at most, and then 8 of
          // each writer come; else all that have to do with the callback queue fall behind at once.
          for _ in 0..<(isHeldBack ? 8 : 200) {
            number += 1
            list.updateChildValues(["count": ServerValue.increment(1), "w\(writer)": number])
            let backlog = database.eventBacklog
            if backlog.stateCount > 64 * backlog.consumerCount { violate("unbounded: \(backlog)") }
          }
          let settled = DispatchSemaphore(value: 0)
          list.getData { _, _ in settled.signal() }
          settled.wait()
          while isHeldBack, database.eventBacklog.stateCount > 16 { usleep(1000) }
        } while !isWatchedEnough
        let count = number
        state.withLock {
          $0.writersLeft -= 1
          $0.writtenCount += count
        }
        continuation.resume()
      }
    }
  }

  /// Compares a state with those that others got at the same place in the order.
  func agree(_ count: Int, _ numbers: [Int], _ name: String) {
    if numbers.reduce(0, +) != count { violate("\(name): \(numbers) are not \(count) writes") }
    let first = state.withLock { state in
      if state.orders[count] == nil { state.orders[count] = numbers }
      return state.orders[count]
    }
    if first != numbers {
      violate("\(name): at \(count) \(numbers), others got \(first ?? [])")
    }
  }
}

/// The events of one observer while it was attached, checked one by one. Used by one thread at a
/// time.
final class LoadChecker: Sendable {
  private struct State {
    var numbers: [String: Int] = [:]
    /// Writers whose change came since the last one of `count`.
    var changed: Set<String> = []
    var isFirst = true
    var isRemoved = false
    var eventCount = 0
  }

  let name: String
  private let board: LoadBoard
  /// Whether each write must show.
  private let isGapless: Bool
  private let state = Shared(State())

  init(_ name: String, _ board: LoadBoard, isGapless: Bool) {
    self.name = name
    self.board = board
    self.isGapless = isGapless
  }

  var eventCount: Int { state.withLock { $0.eventCount } }

  /// From now on nothing may come.
  func remove() { state.withLock { $0.isRemoved = true } }

  /// A state: all of the list, or of one writer, or the count.
  func receive(_ snapshot: DataSnapshot) {
    begin("value")
    guard snapshot.hasChildren() else { return check(snapshot.key, snapshot.int ?? -1) }
    func number(_ key: String) -> Int { snapshot.childSnapshot(forPath: key).int ?? -1 }
    check("count", number("count"))
    board.agree(number("count"), (0..<LoadBoard.writerCount).map { number("w\($0)") }, name)
  }

  /// What happened to a child of the list. The one of `count` comes first of those of a write.
  func receive(_ type: DataEventType, _ child: DataSnapshot) {
    begin("\(type) \(child.key)")
    if type != .childAdded, type != .childChanged { board.violate("\(name): \(type)") }
    if child.key == "count" { endWrite() }
    check(child.key, child.int ?? -1)
    let key = child.key
    if key != "count", !state.withLock({ $0.changed.insert(key).inserted }) {
      board.violate("\(name): \(key) twice in one write")
    }
  }

  private func begin(_ what: String) {
    board.countEvent()
    let isRemoved = state.withLock { state in
      state.eventCount += 1
      return state.isRemoved
    }
    if isRemoved { board.violate("\(name): \(what) after the removal") }
  }

  /// A number follows the one before; without gaps if each write shows.
  private func check(_ key: String, _ new: Int) {
    let old = state.withLock { state in
      defer { state.numbers[key] = new }
      return state.numbers[key]
    }
    guard let old else { return }
    if isGapless ? new != old + 1 : new <= old {
      board.violate("\(name): \(key) from \(old) to \(new)")
    }
  }

  /// The events of a write, or of several, must be complete.
  private func endWrite() {
    let (numbers, changed, isFirst) = state.withLock { state in
      defer {
        state.changed = []
        state.isFirst = state.numbers.isEmpty
      }
      return (state.numbers, state.changed, state.isFirst)
    }
    // Before the first one there was no event; the first ones may have come for what is here.
    guard let count = numbers["count"], !isFirst || numbers.count == LoadBoard.writerCount + 1
    else { return }
    if changed.isEmpty { board.violate("\(name): nothing beside the count \(count)") }
    if isGapless, !isFirst, changed.count != 1 {
      board.violate("\(name): \(changed.sorted()) in the one write \(count)")
    }
    if numbers.count == LoadBoard.writerCount + 1 {
      board.agree(count, (0..<LoadBoard.writerCount).map { numbers["w\($0)"] ?? 0 }, name)
    }
  }
}

/// Attaches and detaches at random, each time in another way, until everything is written.
struct LoadObserver {
  let number: Int
  let board: LoadBoard
  private var random: SeededGenerator
  /// Takes its time with each event. Held back, the writers wait for it.
  private var isSlow: Bool { number < 3 }

  init(_ number: Int, _ board: LoadBoard, seed: UInt64) {
    self.number = number
    self.board = board
    random = SeededGenerator(seed: seed &* 8 &+ UInt64(number))
  }

  private enum Kind: CaseIterable {
    case value, count, changes, snapshots, childEvents
  }

  mutating func run() async {
    var round = 0
    repeat {
      round += 1
      let kind = Kind.allCases[random.below(Kind.allCases.count)]
      // If only the newest state counts, others are left out at any pace.
      let checker = LoadChecker(
        "\(number).\(round) \(kind)", board, isGapless: board.isHeldBack && kind != .snapshots)
      let stay = 1 + random.below(60)
      switch kind {
      case .value: await listen(board.list, .value, checker, stay)
      case .count: await listen(board.list.child("count"), .value, checker, stay)
      case .changes: await listen(board.list, .childChanged, checker, stay)
      case .snapshots, .childEvents: await iterate(kind, checker, stay)
      }
      board.countRound(number)
    } while !board.isWritten
  }

  /// Waits until it got `stay` events, or everything is written.
  private mutating func listen(
    _ query: DatabaseQuery, _ type: DataEventType, _ checker: LoadChecker, _ stay: Int
  ) async {
    let detachesItself = random.oneIn(2)
    let pause: UInt32 = isSlow ? 200 : 0
    let handle = Shared<DatabaseHandle?>(nil)
    let detach: @Sendable () -> Void = {
      guard let handle = handle.withLock({ $0 }) else { return }
      query.removeObserver(withHandle: handle)
      checker.remove()
    }
    let new = query.observe(type) { snapshot in
      if type == .value { checker.receive(snapshot) } else { checker.receive(type, snapshot) }
      if pause > 0 { usleep(pause) }
      if detachesItself, checker.eventCount >= stay { detach() }
    }
    handle.withLock { $0 = new }
    while checker.eventCount < stay, !board.isWritten { await settle(board.database) }
    if detachesItself {
      // On the callback queue too if it did not come to it by itself.
      let database = board.database
      await withCheckedContinuation { continuation in
        database.reference().getData { _, _ in
          detach()
          continuation.resume()
        }
      }
    } else {
      // From here one block may just be running; none is once the queue came round.
      query.removeObserver(withHandle: new)
      await settle(board.database)
      checker.remove()
    }
  }

  private mutating func iterate(_ kind: Kind, _ checker: LoadChecker, _ stay: Int) async {
    let list = board.list
    let isCancelled = random.oneIn(2)
    let isSlow = isSlow
    // By itself it ends with an event: held up at the end, it would wait for the next one for ever.
    let task = Task {
      var count = 0
      func isDone() async -> Bool {
        count += 1
        if isSlow { try? await Task.sleep(for: .microseconds(300)) }
        return !isCancelled && count >= stay
      }
      if kind == .snapshots {
        for try await snapshot in list.snapshots {
          checker.receive(snapshot)
          if await isDone() { break }
        }
      } else {
        for try await event in list.childEvents() {
          checker.receive(event.type, event.snapshot)
          if await isDone() { break }
        }
      }
    }
    while checker.eventCount < stay, !board.isWritten { await settle(board.database) }
    if isCancelled || board.isWritten { task.cancel() }
    do { try await task.value } catch { board.violate("\(checker.name): \(error)") }
    checker.remove()
  }
}
