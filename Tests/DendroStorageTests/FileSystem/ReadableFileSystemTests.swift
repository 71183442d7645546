import DendroTesting
import DendroTestSupport
import Synchronization
import Testing

@testable import DendroStorage

/// A disk of which some bytes cannot be read.
@Suite("Bytes that the medium does not give back")
struct ReadableFileSystemTests {
  @Test("all others are read, and the bad ones are zeros and noted", arguments: 0..<20)
  func reading(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let size = 1 + random.below(20_000)
    let content = noise(size, seed: seed)
    let sectors = (0..<random.below(6)).map { _ in random.below(size / 512 + 1) }
    let disk = try Self.disk(content, Set(sectors))
    let files = ReadableFileSystem(disk)
    let file = try files.open("/file", .read)
    var expected = content
    for sector in sectors {
      for index in (sector * 512)..<min(size, sector * 512 + 512) { expected[index] = 0 }
    }
    for _ in 0..<50 {
      let offset = random.below(size)
      let count = 1 + random.below(size)
      var bytes = [UInt8](repeating: 0xFF, count: count)
      let read = try bytes.withUnsafeMutableBytes {
        try file.readFully(into: $0, at: UInt64(offset), path: "/file")
      }
      #expect(read == min(count, size - offset), "seed \(seed)")
      #expect(Array(bytes.prefix(read)) == Array(expected[offset..<offset + read]), "seed \(seed)")
    }
    var whole = [UInt8](repeating: 0, count: size)
    _ = try whole.withUnsafeMutableBytes { try file.readFully(into: $0, at: 0, path: "/file") }
    let noted = files.problems
    for problem in noted {
      #expect(problem.path == "/file" && problem.found == "none that can be read")
    }
    let badBytes = Set(sectors.flatMap { $0 * 512..<min(size, $0 * 512 + 512) })
    #expect(noted.isEmpty == badBytes.isEmpty)
    #expect(noted.first.map { Int($0.offset) } == badBytes.min())
  }

  @Test("an error that is not the medium's is an error")
  func otherErrors() throws {
    let disk = try Self.disk([1, 2, 3], [0], SystemError(13))
    let file = try ReadableFileSystem(disk).open("/file", .read)
    var bytes: [UInt8] = [0, 0, 0]
    #expect(throws: StorageError.self) {
      try bytes.withUnsafeMutableBytes { try file.readFully(into: $0, at: 0, path: "/file") }
    }
  }

  private static func disk(
    _ content: [UInt8], _ sectors: Set<Int>, _ error: SystemError = .inputOutput
  ) throws -> UnreadableDisk {
    let disk = SimulatedDisk()
    let file = try disk.open("/file", .create)
    try content.withUnsafeBytes { try file.writeAll($0, at: 0, path: "/file") }
    return UnreadableDisk(disk, sectors: ["/file": sectors], error: error)
  }
}
