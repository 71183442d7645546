import DendroTesting
import DendroTestSupport
import Synchronization
import Testing

@testable import DendroStorage

/// A disk of which some bytes cannot be read.
@Suite("Bytes that the medium does not give back")
struct ReadableFileSystemTests {
  private static let bad = SystemError(5)

  @Test("all others are read, and the bad ones are zeros and noted", arguments: 0..<20)
  func reading(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let size = 1 + random.below(20_000)
    let content = noise(size, seed: seed)
    let sectors = (0..<random.below(6)).map { _ in random.below(size / 512 + 1) }
    let disk = try Self.disk(content, bad: Set(sectors))
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
    let disk = try Self.disk([1, 2, 3], bad: [0], with: SystemError(13))
    let file = try ReadableFileSystem(disk).open("/file", .read)
    var bytes: [UInt8] = [0, 0, 0]
    #expect(throws: StorageError.self) {
      try bytes.withUnsafeMutableBytes { try file.readFully(into: $0, at: 0, path: "/file") }
    }
  }

  private static func disk(
    _ content: [UInt8], bad: Set<Int>, with error: SystemError = bad
  ) throws -> BadFileSystem {
    BadFileSystem(content, bad, error)
  }
}

/// One file, some of whose sectors cannot be read.
private final class BadFileSystem: FileSystem {
  private let file: BadFile

  init(_ content: [UInt8], _ bad: Set<Int>, _ error: SystemError) {
    file = BadFile(content, bad, error)
  }

  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File { file }
  func createDirectory(_ path: String) throws(SystemError) { throw .notSupported }
  func list(_ directory: String) throws(SystemError) -> [String] { ["file"] }
  func rename(_ from: String, to: String) throws(SystemError) { throw .notSupported }
  func remove(_ path: String) throws(SystemError) { throw .notSupported }
  func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    throw .notSupported
  }
  func identity(_ path: String) throws(SystemError) -> FileIdentity {
    FileIdentity(device: 1, inode: 1)
  }
  func watch(_ directory: String) -> (any DirectoryWatch)? { nil }
}

private final class BadFile: File {
  private let content: [UInt8]
  private let bad: Set<Int>
  private let error: SystemError

  init(_ content: [UInt8], _ bad: Set<Int>, _ error: SystemError) {
    (self.content, self.bad, self.error) = (content, bad, error)
  }

  func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let start = Int(offset)
    let end = min(content.count, start + buffer.count)
    guard start < end else { return 0 }
    if (start / 512...(end - 1) / 512).contains(where: { bad.contains($0) }) { throw error }
    buffer.copyBytes(from: content[start..<end])
    return end - start
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int {
    throw .notSupported
  }
  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) { throw .notSupported }
  func truncate(to size: UInt64) throws(SystemError) { throw .notSupported }
  func synchronize() throws(SystemError) { throw .notSupported }
  func size() throws(SystemError) -> UInt64 { UInt64(content.count) }
  func identity() throws(SystemError) -> FileIdentity { FileIdentity(device: 1, inode: 1) }
  func lock(_ kind: LockKind) throws(SystemError) -> Bool { true }
  func unlock() {}
}
