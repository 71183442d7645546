import DendroTestSupport
import DendroTree
import Testing

@testable import DendroEngine

/// Readers and a writer, one step at a time, in every order in which they can come.
@Suite("Interleavings of readers and a writer")
struct HeadInterleavingTests {
  /// The steps of one reader: it notes the address, confirms it, once more if that failed, reads, and ends.
  private struct Reader {
    private enum State {
      case away
      case noted(HeadReaders.Reading)
      case reading(HeadReaders.Reading, value: Int64)
    }

    private var state = State.away

    /// Whether the writer has to take it into account.
    var isThere: Bool { if case .away = state { false } else { true } }

    mutating func claim(_ readers: HeadReaders) {
      if case .away = state, let noted = readers.claim() { state = .noted(noted) }
    }

    /// - Parameter value: what the tree has where it is not changing.
    mutating func confirm(_ readers: HeadReaders, value: Int64?) {
      guard case .noted(let noted) = state else { return }
      guard let reading = readers.confirm(noted) else { return state = .away }
      #expect(value != nil, "no reader begins during a change")
      state = .reading(reading, value: value ?? 0)
    }

    func read() throws {
      guard case .reading(let reading, let value) = state else { return }
      let view = reading.branch.view
      #expect(try view.view(parsing: "a/b").scalar == .integer(value))
      #expect(try view.view(parsing: "c").scalar == .integer(-value), "all of the write or nothing")
    }

    mutating func end(_ readers: HeadReaders) {
      guard case .reading(let reading, _) = state else { return }
      state = .away
      readers.end(reading)
    }
  }

  private static let readerSteps = 7
  private static let writerSteps = 3

  /// Runs the steps of the actors in one order.
  ///
  /// - Parameter order: an actor for each step; the last one is the writer.
  private static func run(_ order: [Int], readerCount: Int) throws {
    let readers = HeadReaders(slotCount: 4)
    let (a, c) = (try path("a/b"), try path("c"))
    func write(_ value: Int64, to editor: inout TreeEditor) {
      for (place, value) in [(a, value), (c, -value)] {
        EncodedWrite(.set(place, Node(.integer(value)))).withView { editor.apply($0) { _, _ in } }
      }
    }
    var editor = TreeEditor(.empty, remembersPlace: false)
    write(1, to: &editor)
    readers.publish(editor.rootAddress)

    var actors = [Reader](repeating: Reader(), count: readerCount)
    var steps = [Int](repeating: 0, count: readerCount + 1)
    var value: Int64 = 1
    var isChanging = false
    var addressToKeep: BranchAddress?
    for actor in order {
      let step = steps[actor]
      steps[actor] += 1
      if actor == readerCount {
        switch step % writerSteps {
        case 0:
          // If no reader is there, nothing is copied.
          addressToKeep = actors.contains(where: \.isThere) ? nil : editor.rootAddress
          readers.withdraw(editor.rootAddress)
          isChanging = true
        case 1: write(value + 1, to: &editor)
        default:
          value += 1
          readers.publish(editor.rootAddress)
          isChanging = false
          let address = editor.rootAddress
          if let addressToKeep { #expect(address == addressToKeep) }
        }
        continue
      }
      switch step {
      case 0, 2: actors[actor].claim(readers)
      case 1, 3: actors[actor].confirm(readers, value: isChanging ? nil : value)
      case 4, 5: try actors[actor].read()
      default: actors[actor].end(readers)
      }
    }
    let retiredCount = readers.retired.withLock(\.count)
    #expect(retiredCount == 0 && !readers.hasRetired, "nothing stays")
    let root = editor.finish()
    #expect(root.node(at: a).scalar == .integer(value))
    try root.checkInvariants()
  }

  /// Calls `body` with every order of so many steps of each actor.
  private static func forEachOrder(
    of counts: [Int], _ body: ([Int]) throws -> Void
  ) rethrows -> Int {
    var counts = counts
    var order: [Int] = []
    let length = counts.reduce(0, +)
    var orderCount = 0
    func extend() throws {
      if order.count == length {
        orderCount += 1
        return try body(order)
      }
      for actor in counts.indices where counts[actor] > 0 {
        counts[actor] -= 1
        order.append(actor)
        try extend()
        order.removeLast()
        counts[actor] += 1
      }
    }
    try extend()
    return orderCount
  }

  @Test("a reader and two changes")
  func oneReader() throws {
    let orderCount = try Self.forEachOrder(of: [Self.readerSteps, 2 * Self.writerSteps]) {
      try Self.run($0, readerCount: 1)
    }
    #expect(orderCount == 1_716)
  }

  @Test("two readers and a change")
  func twoReaders() throws {
    // All of the first, and of the second until it would confirm once more.
    let orderCount = try Self.forEachOrder(of: [Self.readerSteps, 2, Self.writerSteps]) { order in
      // The second reader ends at last.
      try Self.run(order + [1, 1, 1, 1, 1], readerCount: 2)
    }
    #expect(orderCount == 7_920)
  }
}
