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
/// written, and the system removes the position when the reader's process ends.
package final class PublishedPosition: Sendable {
  private let directory: DatabaseDirectory
  private let file: any File

  fileprivate init(_ directory: DatabaseDirectory, _ file: any File) {
    self.directory = directory
    self.file = file
  }

  deinit { directory.release(file) }

  /// One or two system calls; none if the write is the same. Does nothing if the system has no such locks.
  package func move(to lsn: LogSequenceNumber) { try? file.lockByte(at: lsn.rawValue) }
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
  package func publishPosition(_ lsn: LogSequenceNumber) throws(StorageError) -> PublishedPosition?
  {
    let file: any File
    do throws(StorageError) {
      file = try fileSystem.open(at: readersLockPath, .read)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return nil }
      throw error
    }
    let position = PublishedPosition(self, file)
    position.move(to: lsn)
    return position
  }

  /// The positions that readers of other processes have published, ascending; for the writer.
  ///
  /// - Complexity: O(positions), at most `positionCountMax`; the lowest are found first.
  package func publishedPositions() throws(StorageError) -> [LogSequenceNumber] {
    guard let file = readersFile.withLock({ $0 }) else { return [] }
    var positions: [LogSequenceNumber] = []
    var start: UInt64 = 0
    do throws(StorageError) {
      while positions.count < Self.positionCountMax,
        let lowest = try lowestLockedByte(file, in: start..<UInt64(Int64.max))
      {
        positions.append(LogSequenceNumber(lowest))
        start = lowest + 1
      }
    } catch {
      // A system or a file system without such locks. Followers then read the directory anew if what they
      // need is gone; a writer that removed nothing would fill the disk.
      return positions
    }
    return positions
  }

  private static var positionCountMax: Int { 64 }

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
