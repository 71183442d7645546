@testable import DendroEngine
import DendroStorage
import DendroTree
import DendroTestSupport
import Testing

@Suite("Writes as bytes")
struct WriteCodingTests {
  private func encode(_ writes: [(time: Int64, write: Write)]) -> [UInt8] {
    let buffer = PayloadBuffer()
    var previous = Path.root
    var time = writes.first?.time ?? 0
    for one in writes {
      WriteCoding.encodeHead(
        of: one.write, timeDelta: UInt64(one.time - time), previousPath: previous, into: buffer)
      WriteCoding.encodeBody(of: one.write, into: buffer)
      previous = one.write.path
      time = one.time
    }
    return buffer.withBytes { Array($0) }
  }

  /// - Returns: what could be read before the bytes were found to be wrong, and whether they were.
  private func decode(_ bytes: [UInt8], count: Int, time: Int64) -> ([LoggedWrite], isWhole: Bool) {
    bytes.withUnsafeBytes { raw in
      var reader = WriteReader(raw, firstLSN: LogSequenceNumber(7), baseTime: time)
      var writes: [LoggedWrite] = []
      for _ in 0..<count {
        guard let write = try? reader.next() else { return (writes, false) }
        writes.append(write)
      }
      return (writes, reader.isAtEnd)
    }
  }

  @Test("come back as they were, with their numbers and times", arguments: 0..<40 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = WriteGenerator(seed: seed)
    var time: Int64 = 1_700_000_000_000
    let writes = (0..<50).map { _ -> (time: Int64, write: Write) in
      time += Int64(generator.random.below(100_000))
      return (time, generator.write())
    }
    let bytes = encode(writes)
    let (read, isWhole) = decode(bytes, count: writes.count, time: writes[0].time)
    #expect(isWhole)
    #expect(read.map(\.time) == writes.map(\.time))
    #expect(read.map(\.lsn.rawValue) == Array(7..<57))
    #expect(read.map(\.byteCount).reduce(0, +) == bytes.count)
    var expected = Node.empty
    var found = Node.empty
    for (one, logged) in zip(writes, read) {
      _ = expected.apply(one.write)
      _ = found.apply(logged.write)
      #expect(expected == found, "seed \(seed), write \(logged.lsn)")
    }
  }

  @Test("are the bytes of the article's worked example")
  func workedExample() throws {
    let base: Int64 = 1_700_000_000_000
    let bytes = encode([
      (base, .set(try path("a/b"), Node(.integer(1)))),
      (
        base + 5,
        .update(
          try path("a"),
          [
            .init(path: try path("b"), action: .increment(.integer(2))),
            .init(path: try path("c"), action: .set(Node(.string("x")))),
          ])
      ),
      (base + 5, .remove(try path("a/b"))),
    ])
    let article: [UInt8] = [
      0x00, 0x01, 0x00, 0x04, 0x01, 0x61, 0x01, 0x62, 0x11, 0x01,
      0x05, 0x04, 0x02, 0x00, 0x02, 0x02, 0x00, 0x02, 0x01, 0x62, 0x11, 0x02, 0x01, 0x01, 0x01,
      0x63, 0x81, 0x78,
      0x00, 0x00, 0x02, 0x02, 0x01, 0x62,
    ]
    #expect(bytes == article)
    let (read, isWhole) = decode(article, count: 3, time: base)
    #expect(isWhole)
    #expect(read.map(\.time) == [base, base + 5, base + 5])
    var root = Node.empty
    for one in read { _ = root.apply(one.write) }
    #expect(root.node(at: try path("a/c")).scalar == .string("x"))
    #expect(root.node(at: try path("a")).childCount == 1)
  }

  @Test("to both roots are the bytes of the article's second example")
  func secondExample() throws {
    let article: [UInt8] = [
      0x00, 0x31, 0x02, 0x63, 0x31, 0x07, 0x00, 0x04, 0x01, 0x61, 0x01, 0x62, 0x11, 0x01, 0x01,
      0x0b, 0x07, 0x72, 0x65, 0x73, 0x75, 0x6c, 0x74, 0x73, 0x02, 0x63, 0x31, 0x11, 0x07,
      0x02, 0x24, 0x00, 0x00, 0x00, 0x01, 0x0b, 0x07, 0x70, 0x65, 0x6e, 0x64, 0x69, 0x6e, 0x67,
      0x02, 0x11, 0x01, 0x7f, 0x1c, 0x04, 0x02, 0x01, 0x61, 0x03, 0x02, 0x00, 0x02, 0x01, 0x62,
      0x11, 0x02, 0x01, 0x01, 0x01, 0x63, 0x41, 0x01, 0x01, 0x64, 0x45, 0x11, 0x01, 0x01, 0x01,
      0x01, 0x74, 0x44,
    ]
    var branch = Node.empty
    branch.graft(Node(Draft.Deferred.standIn), at: try path("d"))
    let kept = EncodedWrite(
      Draft(
        .update(
          try path("a"),
          [
            .init(path: try path("b"), action: .increment(.integer(2))),
            .init(path: try path("c"), action: .set(branch)),
            .init(path: try path("t"), action: .set(Node(Draft.Deferred.standIn))),
          ]),
        deferred: [
          .init(path: try path("c/d"), value: .increment(.integer(1))),
          .init(path: try path("t"), value: .timestamp),
        ]))
    var encoder = BatchEncoder()
    for (lsn, time, write) in [
      (
        UInt64(1), Int64(1_700_000_000_000),
        EncodedWrite(
          EncodedWrite(.set(try path("a/b"), Node(.integer(1)))),
          system: EncodedWrite(.set(try path("results/c1"), Node(.integer(7)))),
          origin: WriteOrigin(client: Array("c1".utf8), number: 7))
      ),
      (
        2, 1_700_000_000_002,
        EncodedWrite(
          nil, system: EncodedWrite(.set(try path("pending/1"), Node(keeping: kept))))
      ),
    ] {
      write.prepare(isLogged: true)
      write.withView {
        _ = encoder.append($0, extras: write, lsn: LogSequenceNumber(lsn), time: time)
      }
    }
    #expect(encoder.payload.withBytes { Array($0) } == article)
    let (read, isWhole) = decode(article, count: 2, time: 1_700_000_000_000)
    #expect(isWhole)
    #expect(read.first?.origin == WriteOrigin(client: Array("c1".utf8), number: 7))
    var roots = TreeRoots()
    for one in read { roots.apply(one) }
    #expect(roots.data.node(at: try path("a/b")).scalar == .integer(1))
    #expect(roots.system.node(at: try path("results/c1")).scalar == .integer(7))
    #expect(roots.system.node(at: try path("pending/1")).keptWrite?.keptBytes == kept.keptBytes)
    // Both readers refuse the same bytes.
    for end in article.indices {
      article[..<end].withUnsafeBytes { bytes in
        var reader = LogV1Reader()
        reader.restart(bytes, firstLSN: LogSequenceNumber(7), baseTime: 0)
        let isRefused = (try? (reader.next(), reader.next())) == nil
        #expect(isRefused && !decode(Array(bytes), count: 2, time: 0).isWhole, "\(end)")
      }
    }
  }

  @Test("cut anywhere are refused, and never trap")
  func truncation() {
    var generator = WriteGenerator(seed: 99)
    let writes = (0..<8).map { (time: Int64($0), write: generator.write()) }
    let bytes = encode(writes)
    for count in 0..<bytes.count {
      let (_, isWhole) = decode(Array(bytes[..<count]), count: writes.count, time: 0)
      #expect(!isWhole, "cut to \(count) of \(bytes.count) bytes")
    }
  }

  @Test("with any byte changed are read or refused, and never trap")
  func changedBytes() {
    var generator = WriteGenerator(seed: 5)
    let writes = (0..<5).map { (time: Int64($0), write: generator.write()) }
    let bytes = encode(writes)
    var refused = 0
    for i in bytes.indices {
      for value in [0, 1, 0x40, 0x41, 0x42, 0x7F, 0x80, 0xFE, 0xFF] as [UInt8] {
        var damaged = bytes
        damaged[i] = value
        let (read, isWhole) = decode(damaged, count: writes.count, time: 0)
        if !isWhole { refused += 1 }
        var root = Node.empty
        for one in read { _ = root.apply(one.write) }
      }
    }
    #expect(refused > 0)
  }

  @Test("of enormous counts and of too many levels are refused without memory being taken")
  func hostileCountsAndDepths() {
    let branch: [UInt8] = [0x41]
    let huge: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]
    let head: [UInt8] = [0, 1, 0, 0]  // a set at the root
    let update: [UInt8] = [0, 4, 0, 0]
    var deep: [UInt8] = head
    for _ in 0..<200 { deep += [0x41, 1, 1, UInt8(ascii: "a")] }
    deep += [1]
    for bytes in [
      head + branch + huge, head + branch + [0], head + branch + [1, 1, 0x2F, 1],
      head + branch + [1, 0x80, 1], head + [0x43], head + [0x30, 1, 1], update + huge,
      [0, 9, 0, 0], [0, 1] + huge, [0, 1, 0] + huge, [0, 1, 1, 0], huge + huge, deep,
      head + branch + [1, 1, UInt8(ascii: "a"), 0x40],
    ] {
      let (read, isWhole) = decode(bytes, count: 1, time: 0)
      #expect(!isWhole)
      #expect(read.isEmpty)
    }
  }

  @Test("deeper than a tree may be are refused, wherever the levels come from")
  func depth() throws {
    func levels(_ count: Int) throws -> Path {
      Path(keys: Array(repeating: try Key("k"), count: count))
    }
    var branch = Node.empty
    _ = branch.apply(.set(try path("a/b"), Node(.bool(true))))
    func writes(_ depth: Int) throws -> [Write] {
      let entry = try levels(depth - 20)
      let above = try levels(depth - 22)
      return [
        .remove(try levels(depth)), .increment(try levels(depth), .integer(1)),
        .setPriority(try levels(depth), .integer(1)), .set(try levels(depth), Node(.bool(true))),
        .set(try levels(depth - 2), branch),
        .update(try levels(20), [.init(path: entry, action: .remove)]),
        .update(try levels(20), [.init(path: entry, action: .setPriority(nil))]),
        .update(try levels(20), [.init(path: above, action: .set(branch))]),
        .update(try levels(depth), []),
      ]
    }
    for write in try writes(Limits.depth) {
      #expect(decode(encode([(0, write)]), count: 1, time: 0).isWhole, "\(write)")
    }
    for write in try writes(Limits.depth + 1) {
      let bytes = encode([(0, write)])
      #expect(!decode(bytes, count: 1, time: 0).isWhole, "\(write)")
      var root = Node.empty
      bytes.withUnsafeBytes { raw in
        var reader = LogV1Reader()
        reader.restart(raw, firstLSN: LogSequenceNumber(7), baseTime: 0)
        #expect(throws: CodingError.self) {
          _ = try reader.applyNext(to: &root)
        }
      }
      #expect(root.isEmpty)
    }
  }
}
