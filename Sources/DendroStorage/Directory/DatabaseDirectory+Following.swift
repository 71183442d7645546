import Synchronization

// How a reader that follows a writer for long keeps the files that it needs, without keeping all.

/// Keeps a writer from removing any file, from `DatabaseDirectory.lease()` until `end()`.
package final class ReadLease: Sendable {
  private let directory: DatabaseDirectory
  private let file: Mutex<(any File)?>

  fileprivate init(_ directory: DatabaseDirectory, _ file: any File) {
    self.directory = directory
    self.file = Mutex(file)
  }

  deinit { end() }

  package func end() {
    if let file = file.withLock({ $0.take() }) { directory.release(file) }
  }
}

/// The last write that a reader has read, where the writer can see it: retention keeps the log behind it up to a
/// limit. It ends when it is released.
///
/// The number of the write is the position of a byte of the readers' lock file that is locked, so that nothing is
/// written, and the system removes the position when the reader's process ends. Archives have a range of bytes of
/// their own, far behind every number that a write will ever have.
package final class PublishedPosition: Sendable {
  package enum Kind: Sendable {
    /// Reads the directory anew if the log that follows is gone.
    case follower
    /// Cannot go on if the log that follows is gone.
    case archive

    fileprivate var bytes: Range<UInt64> {
      switch self {
      case .follower: 0..<1 << 62
      case .archive: 1 << 62..<UInt64(Int64.max)
      }
    }
  }

  private let directory: DatabaseDirectory
  private let file: any File
  private let kind: Kind

  fileprivate init(_ directory: DatabaseDirectory, _ file: any File, _ kind: Kind) {
    self.directory = directory
    self.file = file
    self.kind = kind
  }

  deinit { directory.release(file) }

  /// One or two system calls; none if the write is the same. Does nothing if the system has no such locks.
  package func move(to lsn: LogSequenceNumber) {
    // Names of files may say any number.
    guard lsn.rawValue < UInt64(kind.bytes.count) else { return }
    try? file.lockByte(at: kind.bytes.lowerBound + lsn.rawValue)
  }
}

extension DatabaseDirectory {
  /// Keeps a writer from removing files, in a directory that is opened for following.
  ///
  /// - Returns: nil if that is not needed or not possible: in other modes, and if no lock file is there.
  /// - Throws: `.locked` if a writer removes files for very long.
  package func lease() throws(StorageError) -> ReadLease? {
    guard mode == .following,
      let file = try Self.lockAsReader(readersLockPath, fileSystem)
    else { return nil }
    return ReadLease(self, file)
  }

  /// Publishes a reader's position for the writer.
  ///
  /// - Returns: nil if no lock file is there, in a copy of a directory without it.
  package func publishPosition(
    _ lsn: LogSequenceNumber, of kind: PublishedPosition.Kind = .follower
  ) throws(StorageError) -> PublishedPosition? {
    let file: any File
    do throws(StorageError) {
      file = try fileSystem.open(at: readersLockPath, .read)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return nil }
      throw error
    }
    let position = PublishedPosition(self, file, kind)
    position.move(to: lsn)
    return position
  }

  /// The positions that readers of other processes and archives have published; for the writer.
  ///
  /// - Complexity: O(positions), at most `positionCountMax` of a kind; the lowest are found first.
  package func publishedPositions() throws(StorageError) -> [LogSequenceNumber] {
    try publishedPositions(of: .follower) + publishedPositions(of: .archive)
  }

  /// The positions of one kind, ascending.
  ///
  /// - Parameters:
  ///   - kind: of those who have published them.
  ///   - count: the most that are looked for.
  package func publishedPositions(
    of kind: PublishedPosition.Kind, count: Int = DatabaseDirectory.positionCountMax
  ) throws(StorageError) -> [LogSequenceNumber] {
    guard let file = readersFile.withLock({ $0 }) else { return [] }
    var positions: [LogSequenceNumber] = []
    var bytes = kind.bytes
    do throws(StorageError) {
      while positions.count < count, let lowest = try lowestLockedByte(file, in: bytes) {
        positions.append(LogSequenceNumber(lowest - kind.bytes.lowerBound))
        bytes = lowest + 1..<bytes.upperBound
      }
    } catch {
      // A system or a file system without such locks. Followers then read the directory anew if what they
      // need is gone; a writer that removed nothing would fill the disk.
      return positions
    }
    return positions
  }

  package static var positionCountMax: Int { 64 }

  private func lowestLockedByte(_ file: any File, in range: Range<UInt64>) throws(StorageError)
    -> UInt64?
  {
    var range = range
    var lowest: UInt64?
    // The system names any of the locks that are in the way.
    while let found = try uninterrupted(
      "lock", readersLockPath, { () throws(SystemError) in try file.lockedByte(in: range) })
    {
      let found = max(found, range.lowerBound)
      lowest = found
      range = range.lowerBound..<found
    }
    return lowest
  }
}
