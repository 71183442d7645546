import Testing

@testable import DendroStorage

@Suite struct VarintTests {
  @Test("varints come back, in their shortest form only")
  func roundTrip() throws {
    var values: [UInt64] = [0, 1, 127, 128, 300, .max, .max - 1]
    for shift in 0..<64 { values += [1 << UInt64(shift), (1 << UInt64(shift)) &- 1] }
    for value in values {
      var writer = ByteWriter()
      writer.varint(value)
      writer.signedVarint(Int64(bitPattern: value))
      var reader = ByteReader(writer.bytes)
      #expect(try reader.varint() == value)
      #expect(try reader.signedVarint() == Int64(bitPattern: value))
      #expect(reader.isAtEnd)
    }
  }

  @Test(
    "overlong, endless and cut varints are refused",
    arguments: [
      [0x80, 0x00], [0x80], [], Array(repeating: 0x80, count: 11),
      Array(repeating: 0xFF, count: 9) + [0x02], Array(repeating: 0xFF, count: 10) + [0x01],
    ] as [[UInt8]])
  func overlongAndCutVarints(bytes: [UInt8]) {
    bytes.withUnsafeBytes { bytes in
      var reader = ByteReader(bytes)
      #expect(throws: ByteError.self) { try reader.varint() }
    }
  }
}
