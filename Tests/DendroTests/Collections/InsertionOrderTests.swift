import Dendro
import DendroTree
import Dispatch
import DendroTestSupport
import Testing

@Suite("In the order of insertion")
struct InsertionOrderTests {
  private struct Element: Identifiable {
    let id: Int
    let stamp: Int
  }

  @Test("like an array that is searched, through growth and decline", arguments: 0..<16)
  func model(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var order = InsertionOrder<Element>()
    var model: [Element] = []
    // Short ones, which have no table, as well as long ones.
    let idCount = [4, 8, 9, 12, 200][random.below(5)]
    for step in 0..<2_000 {
      let id = random.below(idCount)
      let place = model.firstIndex { $0.id == id }
      // Mostly insertions, then mostly removals.
      if let place, step / 200 % 2 == 1 || random.oneIn(3) {
        #expect(order.remove(id)?.stamp == model.remove(at: place).stamp)
      } else if place == nil, step / 200 % 2 == 0 || random.oneIn(3) {
        order.append(Element(id: id, stamp: step))
        model.append(Element(id: id, stamp: step))
      } else if place == nil {
        #expect(order.remove(id) == nil)
      }
      let isRight =
        order.count == model.count && order.isEmpty == model.isEmpty
        && order.slots.compactMap { $0?.stamp } == model.map(\.stamp)
        && order.slots.count <= max(8, 2 * model.count)
        && order[id]?.stamp == model.first { $0.id == id }?.stamp
      if !isRight { Issue.record("seed \(seed), step \(step)") }
    }
  }

  @Test("a copy of the places stays as it is")
  func copies() {
    var order = InsertionOrder<Element>()
    for id in 0..<100 { order.append(Element(id: id, stamp: id)) }
    let held = order.slots
    for id in 0..<100 { order.remove(id) }
    #expect(held.compactMap { $0?.id } == Array(0..<100) && order.isEmpty)
  }

  @Test("each step is O(1), whatever is removed first", arguments: [8, 9, 1_000, 50_000])
  func cost(count: Int) {
    for removal in [
      Array(0..<count), (0..<count).reversed(), (0..<count).map { $0 * 7919 % count },
    ]
    where Set(removal).count == count {
      let tally = StepTally()
      var order = InsertionOrder<Element>(tally: tally)
      for id in 0..<count { order.append(Element(id: id, stamp: id)) }
      for id in removal { order.remove(id) }
      #expect(order.isEmpty && tally.count <= 10 * count)
      // One is removed while others stay, again and again.
      tally.count = 0
      for id in 0..<8 { order.append(Element(id: -1 - id, stamp: id)) }
      for id in 0..<count {
        order.append(Element(id: id, stamp: id))
        order.remove(id)
      }
      #expect(tally.count <= 30 * (count + 8))
    }
  }
}

@Suite("States that no listener gets")
struct ReplacedStateTests {
  private func state(_ number: Int) -> Node { Node(.integer(Int64(number))) }
  private func numbers(_ nodes: [Node]) -> [Int] {
    nodes.compactMap { if case .integer(let number)? = $0.scalar { Int(number) } else { nil } }
  }

  @Test("a location past its limit hands over those that waited, none is freed in place")
  func location() {
    let location = SyncPoint(path: .root, node: .empty)
    var replaced: [Node] = []
    for number in 0..<SyncPoint.backlogLimit {
      #expect(location.note(state(number), replacing: &replaced))
    }
    #expect(replaced.isEmpty)
    // It stands in the queue already, as often as there are states.
    #expect(!location.note(state(1_000), replacing: &replaced))
    #expect(numbers(replaced) == Array(0..<SyncPoint.backlogLimit))
  }

  @Test("a subscription hands over what it no longer keeps", arguments: [true, false])
  func subscription(keepsStates: Bool) {
    let subscription = Subscription(path: .root, keepsStates: keepsStates)
    let limit = keepsStates ? SyncPoint.backlogLimit : 1
    var replaced: [Node] = []
    for number in 0...limit { _ = subscription.note(state(number), replacing: &replaced) }
    #expect(numbers(replaced) == Array(0..<limit))
    #expect(subscription.backlogCount == 1)
  }

  @Test("a write that overtakes slow listeners frees nothing itself")
  func writes() async throws {
    let database = Database.inMemory()
    let queue = DispatchQueue(label: "held up")
    queue.suspend()
    database.callbackQueue = queue
    let place = database.reference(withPath: "place")
    place.observe(.value) { _ in }
    var slow = place.snapshots.makeAsyncIterator()
    _ = try await slow.next()
    for number in 0..<200 { try await place.setValue(number) }
    // 64, 128 and 192 of the listener, all but the last one of the iterator.
    #expect(database.replacedStateCount == 192 + 199)
    queue.resume()
    await settle(database)
    #expect(try await slow.next()?.value as? Int == 199)
    try await database.close()
  }
}
