import DendroTree
import DendroTestSupport
import Testing

@Suite struct ScalarTests {
  static let groups: [[Scalar]] = [
    [.bool(false)], [.bool(true)], [.double(-.greatestFiniteMagnitude)],
    [.integer(.min), .double(-0x1p63)], [.double(-1.5)], [.integer(-1)],
    [.integer(0), .double(0), .double(-0.0)], [.double(.leastNonzeroMagnitude)],
    [.integer(1), .double(1)],
    [.double(1.5)], [.integer(9_007_199_254_740_992), .double(0x1p53)],
    [.integer(9_007_199_254_740_993)], [.integer(.max)], [.double(0x1p63)],
    [.double(.greatestFiniteMagnitude)], [.string("")], [.string("A")], [.string("e\u{301}")],
    [.string("s")], [.string("sA")], [.string("é")], [.string("\u{10000}")], [.string("\u{E000}")],
    [.string("\u{FF21}")],
  ]

  @Test("scalars sort by kind and value; equal ones are equal")
  func order() {
    for (i, a) in ScalarTests.groups.enumerated() {
      for (j, b) in ScalarTests.groups.enumerated() {
        for x in a {
          for y in b {
            #expect((x < y) == (i < j), "\(x) < \(y)")
            #expect((x == y) == (i == j), "\(x) == \(y)")
            if i == j { #expect(x.hashValue == y.hashValue) }
          }
        }
      }
    }
  }

  @Test(
    "packed forms",
    arguments: [
      (.bool(false), [0]), (.bool(true), [1]), (.integer(0), [0x10]), (.integer(1), [0x11, 1]),
      (.integer(-1), [0x11, 0xFF]), (.integer(128), [0x12, 0x80, 0]),
      (.integer(-128), [0x11, 0x80]),
      (.integer(.max), [0x18, 255, 255, 255, 255, 255, 255, 255, 0x7F]), (.double(0), [0x20]),
      (.double(-0.0), [0x21, 0x80]), (.double(1.5), [0x22, 0x3F, 0xF8]), (.string(""), [0x80]),
      (.string("hé"), [0x83, 0x68, 0xC3, 0xA9]),
      (
        .string(String(repeating: "x", count: 127)),
        [0xFF, 0x7F] + [UInt8](repeating: 0x78, count: 127)
      ),
    ] as [(Scalar, [UInt8])])
  func packed(scalar: Scalar, bytes: [UInt8]) {
    var packed: [UInt8] = []
    PackedScalar.append(scalar, to: &packed)
    #expect(packed == bytes)
    packed.withUnsafeBytes { packed in
      var offset = 0
      #expect(PackedScalar.read(packed, at: &offset) == scalar)
      #expect(offset == packed.count)
      for count in 0..<packed.count {
        var offset = 0
        #expect(
          PackedScalar.read(UnsafeRawBufferPointer(rebasing: packed[..<count]), at: &offset) == nil)
      }
    }
  }

  @Test("scalars survive packing", arguments: 1...20 as ClosedRange<UInt64>)
  func roundTrip(seed: UInt64) {
    var generator = WriteGenerator(seed: seed)
    for scalar in (0..<300).map({ _ in generator.scalar() }) + ScalarTests.groups.flatMap({ $0 }) {
      var packed: [UInt8] = []
      PackedScalar.append(scalar, to: &packed)
      #expect(packed.count == PackedScalar.byteCount(scalar))
      var offset = 0
      let read = packed.withUnsafeBytes { PackedScalar.read($0, at: &offset) }
      #expect(read.map { "\($0)" } == "\(scalar)")
      #expect(offset == packed.count)
    }
  }

  @Test(
    "packed bytes are refused or the one form of a scalar", arguments: 1...10 as ClosedRange<UInt64>
  )
  func canonical(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<5_000 {
      var bytes = (0..<1 + random.below(12)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      bytes[0] =
        [0, 1, 2, 0x10, 0x12, 0x18, 0x19, 0x22, 0x28, 0x30, 0x80, 0x84, 0xFF][random.below(13)]
      if random.oneIn(2) { for index in bytes.indices.dropFirst() { bytes[index] &= 0x7F } }
      var offset = 0
      guard let leaf = bytes.withUnsafeBytes({ PackedScalar.readLeaf($0, at: &offset) }) else {
        continue
      }
      let count = PackedScalar.leafByteCount(leaf.scalar, priority: leaf.priority)
      #expect(count == offset)
      let again = [UInt8](unsafeUninitializedCapacity: count) { target, written in
        if let base = target.baseAddress {
          _ = PackedScalar.writeLeaf(
            leaf.scalar, priority: leaf.priority, to: UnsafeMutableRawPointer(base))
        }
        written = count
      }
      #expect(again == Array(bytes[..<offset]))
    }
  }

  @Test(
    "increments",
    arguments: [
      (nil, .integer(1), .integer(1)), (.integer(8), .integer(1), .integer(9)),
      (.string("s"), .integer(1), .integer(1)), (.bool(true), .integer(1), .integer(1)),
      (.integer(1), .double(1.5), .double(2.5)), (.double(2), .integer(1), .double(3)),
      (.integer(.max), .integer(1), .double(9_223_372_036_854_775_808)),
      (.integer(.min), .integer(-1), .double(-9_223_372_036_854_775_808)),
      (.double(1e308), .double(1e308), .double(.greatestFiniteMagnitude)),
      (.double(-1e308), .double(-1e308), .double(-.greatestFiniteMagnitude)),
    ] as [(Scalar?, Number, Scalar)])
  func increments(existing: Scalar?, delta: Number, result: Scalar) {
    #expect("\(delta.incrementing(existing))" == "\(result)")
  }
}
