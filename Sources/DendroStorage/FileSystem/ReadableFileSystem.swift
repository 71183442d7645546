import DendroPlatform
import Synchronization

/// A file system that gives what the medium gives back: bytes that cannot be read are zeros, which no checksum takes for
/// data, and are noted. For saving what is left of a database.
package final class ReadableFileSystem: ForwardingFileSystem {
  package let base: any FileSystem
  private let unreadable = Mutex<[String: Unreadable]>([:])

  fileprivate struct Unreadable {
    var byteCount: UInt64
    var sectors: Set<UInt64> = []
  }

  fileprivate static let sector: UInt64 = 512

  package init(_ base: any FileSystem) { self.base = base }

  /// Which bytes could not be read so far, in the order of the files' names.
  package var problems: [LogCursor.Problem] {
    unreadable.withLock { $0 }.sorted { $0.key < $1.key }.flatMap { path, unreadable in
      unreadable.ranges.map { range in
        LogCursor.Problem(
          path: path, offset: range.lowerBound,
          expected: "\(range.upperBound - range.lowerBound) bytes", found: "none that can be read")
      }
    }
  }

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    let file = try base.open(path, mode)
    guard mode == .read else { return file }
    return ReadableFile(file) { offset, byteCount in
      self.note(offset / Self.sector, of: path, byteCount)
    }
  }

  private func note(_ sector: UInt64, of path: String, _ byteCount: UInt64) {
    unreadable.withLock { unreadable in
      _ = unreadable[path, default: Unreadable(byteCount: byteCount)].sectors.insert(sector)
    }
  }
}

extension ReadableFileSystem.Unreadable {
  fileprivate var ranges: [Range<UInt64>] {
    var ranges: [Range<UInt64>] = []
    for sector in sectors.sorted() {
      let start = sector * ReadableFileSystem.sector
      let end = min(byteCount, start + ReadableFileSystem.sector)
      if let last = ranges.last, last.upperBound == start {
        ranges[ranges.count - 1] = last.lowerBound..<end
      } else {
        ranges.append(start..<end)
      }
    }
    return ranges
  }
}

/// A file of such a file system, for reading.
private final class ReadableFile: ForwardingFile {
  let file: any File
  private let note: @Sendable (_ offset: UInt64, _ byteCount: UInt64) -> Void
  /// Where the last sector ended that could not be read: the next one is tried alone.
  private let suspect = Atomic<UInt64>(.max)

  init(_ file: any File, note: @escaping @Sendable (UInt64, UInt64) -> Void) {
    self.file = file
    self.note = note
  }

  func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let size = Int(ReadableFileSystem.sector)
    // Up to the end of a sector: fewer and fewer, so that a slow medium is asked seldom.
    let within = size - Int(offset % UInt64(size))
    var count = buffer.count
    if suspect.load(ordering: .relaxed) == offset { count = min(count, within) }
    while true {
      do throws(SystemError) {
        let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        let read = try file.read(into: bytes, at: offset)
        suspect.store(.max, ordering: .relaxed)
        return read
      } catch {
        guard error.isOfMedium, count > 0 else { throw error }
      }
      guard count > within else { break }
      count = max(within, (count / 2 + size - 1) / size * size - (size - within))
    }
    let byteCount = try file.size()
    let end = min(byteCount, offset + UInt64(count))
    guard offset < end else { return 0 }
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(end - offset)])
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
    note(offset, byteCount)
    suspect.store(end, ordering: .relaxed)
    return bytes.count
  }
}

extension DatabaseDirectory {
  /// The directory with all that can be read of it, and what notes the rest.
  package func readable() throws(StorageError) -> (DatabaseDirectory, ReadableFileSystem) {
    let files = ReadableFileSystem(fileSystem)
    let environment = Environment(
      fileSystem: files, clock: environment.clock, randomness: environment.randomness)
    return (
      try DatabaseDirectory.open(path, environment: environment, mode: .readOnly), files
    )
  }
}
