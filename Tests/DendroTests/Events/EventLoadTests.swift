import Dendro
import Dispatch
import Foundation
import DendroTestSupport
import Testing

/// A listener to everything that keeps its own list from the events of children alone, and holds each
/// value against it. On the callback queue only, but for `end()`.
private final class Mirror: Sendable {
  private struct State {
    /// Keys and what is there, in the order of the query.
    var children: [(key: String, value: String)] = []
    var valueCount = 0
    var violations: [String] = []
    var handles: [DatabaseHandle] = []
    var isRemoved = false
  }

  let name: String
  let query: DatabaseQuery
  private let pause: UInt32
  private let state = Shared(State())

  /// - Parameter pause: microseconds that each value takes, so that the listener falls behind.
  init(_ name: String, _ query: DatabaseQuery, pause: UInt32 = 0) {
    self.name = name
    self.query = query
    self.pause = pause
    let handles = DataEventType.allCases.map { type in
      query.observe(
        type, andPreviousSiblingKeyWith: { [self] in receive(type, $0, after: $1) })
    }
    state.withLock { $0.handles = handles }
  }

  var violations: [String] { state.withLock { $0.violations.map { "\(self.name): \($0)" } } }
  var valueCount: Int { state.withLock { $0.valueCount } }
  var list: String {
    state.withLock { $0.children.map { "\($0.key)=\($0.value)" }.joined(separator: " ") }
  }

  /// Removes the listeners on the callback queue, after which nothing may come.
  func end() async {
    await withCheckedContinuation { continuation in
      query.getData { [self] _, _ in
        for handle in state.withLock({ $0.handles }) { query.removeObserver(withHandle: handle) }
        state.withLock { $0.isRemoved = true }
        continuation.resume()
      }
    }
  }

  private func receive(_ type: DataEventType, _ snapshot: DataSnapshot, after previous: String?) {
    let key = snapshot.key
    let value = shown(snapshot.value)
    let shows = type == .value ? snapshot.map { "\($0.key)=\(shown($0.value))" } : []
    state.withLock { state in
      if state.isRemoved { state.violations.append("\(type) \(key) after the removal") }
      // The five did not begin at one moment, but the listener to values came last.
      guard state.valueCount > 0 || type == .value else { return }
      let index = state.children.firstIndex { $0.key == key }
      switch type {
      case .childRemoved:
        if let index { state.children.remove(at: index) } else { Self.miss(&state, type, key) }
      case .childAdded:
        if index != nil { Self.miss(&state, type, key) }
        state.children.append((key, value))
      case .childChanged, .childMoved:
        if let index {
          // The count of one writer never decreases.
          if let was = Int(state.children[index].value), let now = Int(value), now < was {
            state.violations.append("\(key) from \(was) back to \(now)")
          }
          state.children[index].value = value
        } else {
          Self.miss(&state, type, key)
        }
      case .value:
        state.valueCount += 1
        let mine = state.children.map { "\($0.key)=\($0.value)" }
        if state.valueCount > 1, mine.sorted() != shows.sorted() {
          state.violations.append("\(mine) beside the value \(shows)")
        }
        // In the order of the query from here on.
        state.children = shows.map { text in
          let parts = text.split(separator: "=", maxSplits: 1)
          return (String(parts[0]), String(parts[1]))
        }
      }
      // Its neighbour is there by the end of the batch; the first one has none.
      if type == .childAdded, previous == key { Self.miss(&state, type, key) }
    }
    if type == .value, pause > 0 { usleep(pause) }
  }

  private static func miss(_ state: inout State, _ type: DataEventType, _ key: String) {
    state.violations.append("\(type) of \(key) does not fit")
  }
}

@Suite("Listeners under load")
struct EventLoadTests {
  let database = Database.inMemory()
  var list: DatabaseReference { database.reference(withPath: "list") }

  private func query(_ number: Int) -> DatabaseQuery {
    switch number % 4 {
    case 0: list
    case 1: list.queryOrderedByKey().queryLimited(toLast: 5)
    case 2: list.queryOrderedByValue().queryLimited(toLast: 3)
    default: list.queryOrderedByValue().queryStarting(atValue: 100).queryLimited(toFirst: 4)
    }
  }

  /// Two paces: at full speed, where a slow observer gets differences, and held back so that each
  /// observer gets each write; with callbacks, snapshots and child events as the seed draws them.
  @Test(
    "4 writers, 8 observers that attach and detach at random, slow ones among them: in commit order, none missing, none after removal, memory bounded",
    arguments: [false, true], Scale.seeds(2))
  func attachingAndDetaching(isHeldBack: Bool, seed: UInt64) async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(
      at: directory.path, options: DatabaseOptions(durability: .onRequest))
    let board = LoadBoard(database, isHeldBack: isHeldBack)
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<LoadBoard.writerCount {
        group.addTask { await board.write(writer) }
      }
      for number in 0..<LoadBoard.observerCount {
        group.addTask {
          var observer = LoadObserver(number, board, seed: seed)
          await observer.run()
        }
      }
    }
    // Whatever was still to come after a removal has come by now.
    await settle(database)
    #expect(board.violations.prefix(5) == [], "seed \(seed)")
    let last = LoadChecker("in the end", board, isGapless: true)
    last.receive(try await board.list.getData())
    #expect(try await board.list.child("count").getData().int == board.writtenCount)
    #expect(board.violations.prefix(5) == [])
    #expect(database.eventBacklog.consumerCount == 0 && database.eventBacklog.stateCount == 0)
    try await database.close()
    print("load: \(board.writtenCount) writes, \(board.eventCount) events, held back \(isHeldBack)")
  }

  @Test("4 writers, 8 listeners and windows that come and go, slow ones among them")
  func comingAndGoing() async throws {
    let writersLeft = Shared(4)
    let violations = Shared<[String]>([])
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          plainly {
            for number in 1...1_500 {
              // Its own ten keys upwards; now and then one is removed.
              let child = list.child("w\(writer)-\(number % 10)")
              if number % 37 == 0 { child.removeValue() } else { child.setValue(number) }
            }
          }
          writersLeft.withLock { $0 -= 1 }
        }
      }
      for listener in 0..<8 {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(listener))
          repeat {
            let mirror = Mirror(
              "\(listener)", query(listener), pause: listener < 2 ? 200 : 0)
            for _ in 0..<1 + random.below(4) { await settle(database) }
            await mirror.end()
            await settle(database)
            let found = mirror.violations
            violations.withLock { $0 += found }
          } while writersLeft.withLock({ $0 }) > 0
        }
      }
    }
    #expect(violations.value.prefix(5) == [])
  }

  @Test("in the end every listener that stayed shows what a read shows, slow or not")
  func staying() async throws {
    let mirrors = (0..<8).map {
      Mirror("\($0)", query($0), pause: $0 < 2 ? 200 : 0)
    }
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          plainly {
            for number in 1...1_500 { list.child("w\(writer)-\(number % 10)").setValue(number) }
          }
        }
      }
    }
    await settle(database)
    for mirror in mirrors {
      let read = try await mirror.query.getData()
      #expect(
        mirror.list == read.map { "\($0.key)=\(shown($0.value))" }.joined(separator: " "),
        "\(mirror.name)")
      #expect(mirror.violations.prefix(3) == [])
      await mirror.end()
    }
  }

  @Test("if no more than 64 writes wait for delivery, none is left out, also of windows")
  func nothingMissing() async throws {
    let recorder = Recorder(database)
    recorder.listen("all", list, [.childChanged])
    recorder.listen("last", list.queryOrderedByKey().queryLimited(toLast: 4), [.childChanged])
    recorder.listen("w2", list.child("w2"), [.value])
    for writer in 0..<4 { try await list.child("w\(writer)").setValue(0) }
    _ = await recorder.take()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          for number in 1...200 {
            try await list.child("w\(writer)").setValue(number)
            if number % 8 == 0 { await settle(database) }
          }
        }
      }
      try await group.waitForAll()
    }
    let lines = await recorder.take()
    let numbers: [String] = (1...200).map { "\($0)" }
    for writer in 0..<4 {
      for name in ["all", "last"] {
        let counted: [Substring] = lines.filter { $0.hasPrefix("\(name):changed w\(writer)=") }
          .compactMap { $0.split(whereSeparator: { "= ".contains($0) }).dropFirst(2).first }
        #expect(counted.map { String($0) } == numbers, "\(name) w\(writer)")
      }
    }
    #expect(
      lines.filter { $0.hasPrefix("w2") } == (1...200).map { "w2:value \($0)" })
  }

  @Test("while the queue is held up a location keeps 64 states, whatever is written")
  func bounded() async throws {
    let gate = DispatchSemaphore(value: 0)
    try await list.setValue(["k0": 0])
    let mirrors = (0..<4).map { Mirror("\($0)", query($0)) }
    await settle(database)
    let before = mirrors.map(\.valueCount)
    list.getData { _, _ in gate.wait() }
    // Two consumers that ask for nothing more: of all states, and of the newest only.
    var events = list.childEvents().makeAsyncIterator()
    var snapshots = list.snapshots.makeAsyncIterator()
    _ = try await events.next()
    _ = try await snapshots.next()
    plainly {
      for number in 0..<20_000 { list.child("k\(number % 50)").setValue(number) }
    }
    let backlog = database.eventBacklog
    #expect(backlog.consumerCount == 3)
    #expect((3...64 + 64 + 1).contains(backlog.stateCount), "\(backlog)")
    #expect(backlog.workCount <= 65, "\(backlog)")
    gate.signal()
    #expect(try await snapshots.next()?.childSnapshot(forPath: "k49").int == 19_999)
    await settle(database)
    for (mirror, count) in zip(mirrors, before) {
      #expect(mirror.violations == [])
      // A drain has taken up to 32 states already.
      #expect(mirror.valueCount - count <= 64 + 32 + 1)
      let read = try await mirror.query.getData()
      #expect(
        mirror.list == read.map { "\($0.key)=\(shown($0.value))" }.joined(separator: " "))
      await mirror.end()
    }
  }
}
