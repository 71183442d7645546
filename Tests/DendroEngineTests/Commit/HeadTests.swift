import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroEngine

/// The head, which is changed under a lock that its readers do not take.
@Suite struct HeadTests {
  private let readers = HeadReaders(slotCount: 4)

  private var retiredCount: Int { readers.retired.withLock(\.count) }

  private func head(_ writes: [(String, Int64)] = [("a/b", 1), ("c", 2)]) throws -> Head {
    var root = Node.empty
    for (path, value) in writes { try Self.write(path, value, to: &root) }
    return Head(root, nil, readers)
  }

  private static func write(_ place: String, _ value: Int64, to root: inout Node) throws {
    _ = root.apply(.set(try path(place), Node(.integer(value))))
  }

  private func change(_ head: inout Head, _ place: String, _ value: Int64) throws {
    EncodedWrite(.set(try path(place), Node(.integer(value)))).withView { write in
      head.apply(write) { _, _ in }
    }
  }

  private func read(_ reading: HeadReaders.Reading, _ place: String) throws -> Scalar? {
    try reading.branch.view.view(parsing: place).scalar
  }

  @Test("what no one reads is changed in place, and nothing is kept")
  func inPlace() throws {
    var head = try head()
    let before = BranchAddress(of: head.root)
    try change(&head, "a/b", 7)
    #expect(BranchAddress(of: head.root) == before && !readers.hasRetired)
    let reading = try #require(readers.begin())
    #expect(try read(reading, "a/b") == .integer(7) && read(reading, "c") == .integer(2))
    #expect(try reading.branch.node(at: path("a")).childCount == 1)
    readers.end(reading)
  }

  @Test("what is read stays as it is, until the last of its readers has ended")
  func copied() throws {
    var head = try head()
    let old = try #require(readers.begin())
    try change(&head, "a/b", 7)
    let middle = try #require(readers.begin())
    for value in 8...20 { try change(&head, "a/b", Int64(value)) }
    #expect(try read(old, "a/b") == .integer(1) && read(middle, "a/b") == .integer(7))
    #expect(head.root.node(at: try path("a/b")).scalar == .integer(20))
    #expect(retiredCount == 2)
    readers.end(old)
    #expect(retiredCount == 1 && readers.hasRetired)
    #expect(try read(middle, "a/b") == .integer(7))
    readers.end(middle)
    #expect(retiredCount == 0 && !readers.hasRetired)
    let address = BranchAddress(of: head.root)
    try change(&head, "a/b", 21)
    #expect(BranchAddress(of: head.root) == address, "it is changed in place again")
  }

  @Test("two readers of one tree: it is kept until both have ended")
  func twoReaders() throws {
    var head = try head()
    let first = try #require(readers.begin())
    let second = try #require(readers.begin())
    try change(&head, "c", 3)
    readers.end(first)
    #expect(retiredCount == 1 && readers.hasRetired)
    #expect(try read(second, "c") == .integer(2))
    readers.end(second)
    #expect(retiredCount == 0 && !readers.hasRetired)
  }

  @Test("what is not changed in the end is not kept")
  func noChange() throws {
    var head = try head()
    let reading = try #require(readers.begin())
    head.beginChange()
    head.endChange()
    #expect(!readers.hasRetired && retiredCount == 0)
    readers.end(reading)
  }

  @Test("a reader is found although the tree is not published any more")
  func withdrawn() throws {
    var head = try head()
    let reading = try #require(readers.begin())
    readers.publish(nil)
    try change(&head, "c", 3)
    #expect(try read(reading, "c") == .integer(2) && retiredCount == 1)
    readers.end(reading)
    #expect(retiredCount == 0)
  }

  @Test("a change that is taken back while the tree is read")
  func takenBack() throws {
    var head = try head()
    let reading = try #require(readers.begin())
    let before = head.root
    try change(&head, "c", 3)
    head.replace(by: before, pages: nil)
    #expect(!readers.hasRetired && retiredCount == 0)
    readers.end(reading)
  }

  @Test("what is changed in place beside a tree that is kept leaves that alone")
  func inPlaceBesideKept() throws {
    var head = try head()
    let reading = try #require(readers.begin())
    try change(&head, "c", 3)
    let address = BranchAddress(of: head.root)
    for value in 4...9 { try change(&head, "c", Int64(value)) }
    #expect(BranchAddress(of: head.root) == address && retiredCount == 1)
    #expect(try read(reading, "c") == .integer(2))
    readers.end(reading)
    #expect(retiredCount == 0)
  }

  @Test("no reader begins during a change, in an empty tree or in one that is a leaf")
  func nothingToRead() throws {
    var head = try head()
    head.beginChange()
    #expect(readers.begin() == nil)
    head.endChange()
    head.replace(by: .empty, pages: nil)
    #expect(readers.begin() == nil)
    head.replace(by: Node(.string(String(repeating: "long", count: 1_000))), pages: nil)
    #expect(readers.begin() == nil)
    try change(&head, "a", 1)
    let reading = try #require(readers.begin())
    readers.end(reading)
  }

  @Test("a thread whose slots are taken uses the lock, until one is free")
  func slots() throws {
    let head = try head()
    var readings: [HeadReaders.Reading] = []
    while let reading = readers.begin() { readings.append(reading) }
    #expect(readings.count == 4)
    for reading in readings { readers.end(reading) }
    #expect(readers.begin() != nil)
    withExtendedLifetime(head) {}
  }

  @Test(
    "slots are a power of two, from 4 to 64",
    arguments: [(0, 4), (4, 4), (5, 8), (33, 64), (999, 64)])
  func slotCount(wanted: Int, count: Int) {
    #expect(HeadReaders(slotCount: wanted).slotCount == count)
  }

  @Test("what a checkpoint holds is lent once all of it was read")
  func partial() throws {
    let disk = SimulatedDisk(seed: 1)
    _ = try LoadingTests.database(disk)
    let engine = try LoadingTests.open(disk)
    #expect(engine.pipeline.readers.begin() == nil)
    #expect(try engine.reading { view, _ in view.childCount } == 31)
    #expect(engine.pipeline.readers.begin() == nil)
    _ = try engine.wholeHead()
    #expect(try engine.view(at: path("o7/leaf3")).scalar == .string("7 3"))
    let reading = try #require(engine.pipeline.readers.begin())
    #expect(try read(reading, "o7/leaf3") == .string("7 3"))
    engine.pipeline.readers.end(reading)
    try engine.close()
  }

  @Test("what a read leaves behind is freed when the read ends, also if its block throws")
  func freed() throws {
    struct Stop: Error {}
    let engine = Engine(inMemory: .inline, environment: SimulatedDisk(seed: 1).environment)
    engine.submit(try set("a/b", .integer(1)), completion: nil)
    #expect(throws: Stop.self) {
      try engine.reading { view, _ -> Void in
        engine.submit(try set("a/b", .integer(2)), completion: nil)
        let old = try view.view(parsing: "a/b").scalar
        let new = try engine.reading { view, _ in try view.view(parsing: "a/b").scalar }
        #expect(old == .integer(1) && new == .integer(2))
        #expect(engine.pipeline.readers.hasRetired)
        throw Stop()
      }
    }
    #expect(!engine.pipeline.readers.hasRetired)
  }

  @Test("readers beside writers see whole updates, and nothing stays behind")
  func threads() throws {
    let engine = Engine(inMemory: .inline, environment: SimulatedDisk(seed: 1).environment)
    let places = try (0..<8).map { try path("list/\($0)/n") }
    @Sendable func write(_ value: Int64) {
      let entries = places.map { Write.Entry(path: $0, action: .set(Node(.integer(value)))) }
      engine.submit(Draft(.update(.root, entries)), completion: nil)
    }
    write(0)
    let wrongCount = Atomic<Int>(0)
    let isWriting = Atomic<Bool>(true)
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      guard thread > 0 else {
        for value in 1...Int64(Scale.scaled(200_000)) { write(value) }
        return isWriting.store(false, ordering: .relaxed)
      }
      var newest: Int64 = 0
      repeat {
        let seen = try? engine.reading { view, _ in
          try places.map { try view.view(parsing: $0.description).scalar }
        }
        guard let seen, let first = seen[0], case .integer(let value) = first,
          seen.allSatisfy({ $0 == first }), value >= newest
        else {
          wrongCount.add(1, ordering: .relaxed)
          return
        }
        newest = value
      } while isWriting.load(ordering: .relaxed)
    }
    #expect(wrongCount.load(ordering: .relaxed) == 0)
    #expect(!engine.pipeline.readers.hasRetired)
  }
}
