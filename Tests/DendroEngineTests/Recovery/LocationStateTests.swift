import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// What is at one location of a directory, read without the rest.
@Suite("Reading one location")
struct LocationStateTests {
  @Test("the value of every location is that of the whole tree", arguments: Scale.seeds(30))
  func random(seed: UInt64) throws {
    let disk = SimulatedDisk(seed: seed)
    var generator = WriteGenerator(seed: seed)
    let engine = try LoadingTests.open(disk)
    for round in 0..<3 {
      for step in 0..<60 {
        engine.submit(Draft(generator.write()), completion: nil)
        if step % 7 == 0 { engine.pump() }
      }
      engine.pump()
      for _ in 0..<20 {
        let path = generator.path()
        let state = try Engine.state(of: path, in: "/db", environment: disk.environment)
        #expect(try state.root.node(at: path) == engine.view(at: path), "\(path)")
        #expect(state.lsn == engine.head.lsn)
        try state.root.checkInvariants()
      }
      if round != 1 { try engine.checkpoint() }
    }
    try engine.close()
  }

  @Test("of a long log, which two threads read")
  func longLog() throws {
    let disk = SimulatedDisk(seed: 8)
    let engine = try LoadingTests.open(disk)
    var generator = SeededGenerator(seed: 8)
    // Longer than what compression looks back, and hence stored as it is each time.
    let noise = String(
      decoding: (0..<70_000).map { _ in UInt8(33 + generator.below(90)) }, as: UTF8.self)
    let long = String(repeating: noise, count: 4)
    for number in 0..<40 {
      engine.submit(try set("long/n\(number % 5)", .string("\(number) \(long)")), completion: nil)
      for leaf in 0..<10 {
        engine.submit(
          try set("few/n\(leaf)", .string("\(number) \(leaf)")), completion: nil)
      }
      engine.submit(Draft(.increment(try path("count"), .integer(1))), completion: nil)
      engine.pump()
      disk.clock.advance(by: 1_000)
    }
    let byteCount =
      disk.names(in: "/db").filter { $0.hasSuffix(".log") }
      .map { disk.contents(of: "/db/" + $0)?.count ?? 0 }.max() ?? 0
    #expect(byteCount > 8 << 20)
    let whole = try Engine.state(of: .root, in: "/db", environment: disk.environment)
    for text in ["few", "few/n3", "count", "long/n2", "none"] {
      let place = try path(text)
      let state = try Engine.state(of: place, in: "/db", environment: disk.environment)
      #expect(try state.root.node(at: place) == engine.view(at: place), "\(text)")
      #expect(state.lsn == whole.lsn && state.time == whole.time, "\(text)")
    }
    try engine.close()
  }

  @Test("keys that begin alike are different locations")
  func prefixes() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try LoadingTests.open(disk)
    for (number, text) in ["a", "ab", "a/b", "abc", "a/bc", "b"].enumerated() {
      engine.submit(try set(text, .integer(Int64(number))), completion: nil)
    }
    engine.pump()
    for text in ["a", "ab", "a/b", "abc", "a/bc", "b", "c", "a/b/c"] {
      let place = try path(text)
      let state = try Engine.state(of: place, in: "/db", environment: disk.environment)
      #expect(try state.root.node(at: place) == engine.view(at: place), "\(text)")
    }
    try engine.close()
  }

  @Test("a damaged record is an error, also if it does not concern the location")
  func damaged() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try LoadingTests.open(disk)
    for number in 0..<20 {
      engine.submit(try set("n\(number)", .integer(Int64(number))), completion: nil)
      engine.pump()
    }
    try engine.close()
    let name = try #require(disk.names(in: "/db").first { $0.hasSuffix(".log") })
    disk.flipBit(300 * 8, of: "/db/" + name)
    let error = #expect(throws: EngineError.self) {
      try Engine.state(of: path("n1"), in: "/db", environment: disk.environment)
    }
    guard case .storage(.corrupt)? = error else {
      Issue.record("\(error as Any)")
      return
    }
  }

  @Test("a record is passed over only if its writes are valid and do not concern the location")
  func passedOver() throws {
    var generator = WriteGenerator(seed: 5)
    var random = SeededGenerator(seed: 6)
    var passedCount = 0
    for number in 0..<4_000 {
      let payload = PayloadBuffer()
      let write = generator.write()
      WriteCoding.encodeHead(of: write, timeDelta: 0, previousPath: .root, into: payload)
      WriteCoding.encodeBody(of: write, into: payload)
      var bytes = payload.withBytes { Array($0) }
      // Half of them are damaged in one byte, as no checksum would show it.
      if number % 2 == 1 {
        bytes[random.below(bytes.count)] ^= UInt8(1 << random.below(8))
      }
      for location in ["a", "b/c", "elsewhere/far", "\(write.path)"] {
        let location = ReplayLocation(try Path(parsing: location))
        bytes.withUnsafeBytes { bytes in
          guard location.isPassedOver(by: bytes) else { return }
          passedCount += 1
          var reader = LogV1Reader()
          reader.restart(bytes, firstLSN: LogSequenceNumber(1), baseTime: 0)
          var root = Node.empty
          let applied = try? reader.applyNext(
            to: &root, concerning: location)
          #expect(applied?.time == 0 && reader.isAtEnd && root.isEmpty, "\(write)")
        }
      }
    }
    #expect(passedCount > 500)
  }

  @Test(
    "of an update only the entries that concern the location are applied",
    arguments: ["", "top"], [false, true])
  func entries(base: String, hasRemoval: Bool) throws {
    let base = try path(base)
    var entries = try ["a", "b/c", "b/d/e", "bb", "c/b"].map { text in
      Write.Entry(path: try path(text), action: .set(Node(.bool(true))))
    }
    // Without one, the leaves are put into the tree straight from their bytes.
    if hasRemoval { entries.append(Write.Entry(path: try path("z"), action: .remove)) }
    let payload = PayloadBuffer()
    let write = Write.update(base, entries)
    WriteCoding.encodeHead(of: write, timeDelta: 0, previousPath: .root, into: payload)
    WriteCoding.encodeBody(of: write, into: payload)
    let bytes = payload.withBytes { Array($0) }
    for (text, expected) in [
      ("b", ["b/c", "b/d/e"]), ("b/d", ["b/d/e"]), ("b/d/e/f", ["b/d/e"]), ("a", ["a"]),
      ("x", []), ("b/x", []),
    ] {
      let location = ReplayLocation(base.appending(try path(text)))
      var root = Node.empty
      try bytes.withUnsafeBytes { bytes in
        var reader = LogV1Reader()
        reader.restart(bytes, firstLSN: LogSequenceNumber(1), baseTime: 0)
        _ = try reader.applyNext(to: &root, concerning: location)
        let isAtEnd = reader.isAtEnd
        #expect(isAtEnd)
      }
      let present = entries.map(\.path).filter {
        !root.node(at: base.appending($0)).isEmpty
      }
      #expect(try present == expected.map { try path($0) }, "\(text)")
    }
  }

  @Test("bytes of a write that is skipped end with an error if they are no write")
  func hostile() throws {
    var random = SeededGenerator(seed: 4)
    for _ in 0..<2_000 {
      let bytes = (0..<Int(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next())
      }
      bytes.withUnsafeBytes { bytes in
        var reader = LogV1Reader()
        reader.restart(bytes, firstLSN: LogSequenceNumber(1), baseTime: 0)
        var root = Node.empty
        let location = try? ReplayLocation(path("elsewhere/far/away"))
        for _ in 0..<100 {
          guard
            (try? reader.applyNext(
              to: &root, concerning: location)) != nil
          else { break }
        }
      }
    }
  }
}
