package import DendroStorage

// How an engine begins with a state of the shared log that another engine had: as the file of a checkpoint.

extension Engine {
  /// The head, if its last write is this one. The owner of the shared log can tell that all of it stands.
  ///
  /// - Returns: nil if the head has more writes, or fewer.
  /// - Complexity: O(1). Does not wait for the disk; may be called in a turn.
  package func state(at lsn: LogSequenceNumber) -> HistoryState? {
    pipeline.admission.withLockInTurn { admission in
      guard admission.lastLSN == lsn else { return nil }
      return HistoryState(roots: admission.roots, lsn: lsn, time: admission.lastTime)
    }
  }
}

/// A checkpoint that was written to be copied elsewhere, in a directory of its own, which is no database.
package struct SharedCheckpoint {
  private let directory: DatabaseDirectory
  private let lsn: LogSequenceNumber

  /// Writes a state. Waits for the disk on the calling thread.
  ///
  /// - Parameters:
  ///   - databaseID: of the engines that share the log.
  ///   - path: absolute; of a directory that does not exist, or holds what an earlier attempt left. The caller removes it.
  ///   - isCancelled: asked again and again while the file is written.
  /// - Returns: nil if it was cancelled.
  package static func write(
    _ state: HistoryState, databaseID: DatabaseID, to path: String, environment: Environment,
    isCancelled: () -> Bool
  ) throws(EngineError) -> SharedCheckpoint? {
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(path, environment: environment, mode: .backup)
      do throws(StorageError) {
        // Drawn at random: binds the checkpoint to the log that begins behind it in each copy.
        let logChecksum = UInt32(truncatingIfNeeded: environment.randomness.next())
        let byteCount = try CheckpointCoding.write(
          state.roots, lsn: state.lsn, time: state.time, databaseID: databaseID,
          logChecksum: logChecksum, to: directory, isCancelled: isCancelled)
        guard byteCount != nil else {
          directory.close()
          return nil
        }
        return SharedCheckpoint(directory: directory, lsn: state.lsn)
      } catch {
        directory.close()
        throw error
      }
    } catch {
      throw .storage(error)
    }
  }

  /// Reads the file, part after part.
  package func reader(partByteCount: Int) throws(EngineError) -> CheckpointFileReader {
    do throws(StorageError) {
      return try CheckpointFileReader(directory, lsn: lsn, partByteCount: partByteCount)
    } catch {
      throw .storage(error)
    }
  }

  /// Call it once the file is read.
  package func close() { directory.close() }
}

/// Makes a database of a checkpoint's file that another engine with the same shared log has written, and an empty log behind
/// it.
package final class ReceivedCheckpoint {
  private let directory: DatabaseDirectory
  private let file: CheckpointFileWriter
  private let databaseID: DatabaseID
  private let lsn: LogSequenceNumber

  /// Begins. Until `finish()` no engine opens the directory.
  ///
  /// - Parameters:
  ///   - path: absolute; of a directory that does not exist, or holds what an earlier attempt left. After an error, the
  ///     caller removes it.
  ///   - databaseID: of the engines that share the log.
  package init(
    at path: String, lsn: LogSequenceNumber, databaseID: DatabaseID, environment: Environment
  ) throws(EngineError) {
    do throws(StorageError) {
      directory = try DatabaseDirectory.open(path, environment: environment, mode: .backup)
      file = try CheckpointFileWriter(directory, lsn: lsn)
    } catch {
      throw .storage(error)
    }
    self.databaseID = databaseID
    self.lsn = lsn
  }

  deinit { directory.close() }

  package func append(_ part: [UInt8]) throws(EngineError) {
    do throws(StorageError) {
      try file.append(part)
    } catch {
      throw .storage(error)
    }
  }

  /// Makes the database; durable when it returns, and closed. The pages of the checkpoint are checked when it is opened.
  ///
  /// - Throws: `.storage(.corrupt)` if the file is no checkpoint at this write, or of another database.
  package func finish() throws(EngineError) {
    do throws(StorageError) {
      try file.finish()
      let checkpoint = try CheckpointReader.open(directory, lsn: lsn)
      guard checkpoint.databaseID == databaseID else {
        throw .corrupt(
          path: checkpoint.path, offset: 0, expected: "a checkpoint of this namespace",
          found: "one of another database")
      }
      let log = try LogWriter.create(
        directory, databaseID: databaseID, after: lsn, logChecksum: checkpoint.header.logChecksum,
        time: checkpoint.time, hasSecondRoot: true)
      try log.close()
      try directory.finishBackup()
    } catch {
      throw .storage(error)
    }
    directory.close()
  }
}
