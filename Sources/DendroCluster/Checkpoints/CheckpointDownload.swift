import DendroEngine
import DendroPlatform
import DendroStorage
import Foundation

/// Makes a server's copy of the data from a checkpoint that another server has published.
struct CheckpointDownload {
  let session: ClusterSession
  let settings: ClusterSettings
  let environment: DendroStorage.Environment
  /// Of the server; absolute.
  let directory: String

  /// Makes the database at a path. It appears complete or not at all.
  ///
  /// - Parameter path: in the server's directory, where nothing is.
  /// - Throws: `.damagedCheckpoint` if what PostgreSQL has of it is not what was published, or is there no longer.
  func run(_ checkpoint: PublishedCheckpoint, to path: String) throws(ClusterError) {
    let aside = directory + "/download"
    try? FileManager.default.removeItem(atPath: aside)
    do throws(ClusterError) {
      try receive(checkpoint, at: aside)
      guard rename(aside, path) == 0 else {
        throw .files("move \(aside) to \(path): \(String(cString: strerror(errno)))")
      }
      try synchronizeDirectory()
    } catch {
      try? FileManager.default.removeItem(atPath: aside)
      throw error
    }
  }

  private func receive(
    _ checkpoint: PublishedCheckpoint, at path: String
  ) throws(ClusterError) {
    let databaseID = session.clusterID.databaseID(of: settings.namespace)
    let received = try ClusterError.ofEngine { () throws(EngineError) in
      try ReceivedCheckpoint(
        at: path, lsn: checkpoint.lsn, databaseID: databaseID, environment: environment)
    }
    let hash = CheckpointHash(at: checkpoint.position)
    var byteCount: Int64 = 0
    var number: Int64 = 0
    var lastBeat: ContinuousClock.Instant?
    while number < checkpoint.partCount {
      // The log behind the checkpoint is kept for a server that is there.
      if lastBeat.map({ .now - $0 >= settings.beatInterval }) ?? true {
        try session.beat(lsn: checkpoint.lsn)
        lastBeat = .now
      }
      guard let part = try session.part(number, of: checkpoint.upload) else {
        throw damage(checkpoint, "part \(number) of \(checkpoint.partCount) is missing")
      }
      hash.update(part)
      byteCount += Int64(part.count)
      guard byteCount <= checkpoint.byteCount else { break }
      try ClusterError.ofEngine { () throws(EngineError) in try received.append(part) }
      number += 1
    }
    guard hash.finish() == checkpoint.hash, byteCount == checkpoint.byteCount else {
      throw damage(checkpoint, "its bytes are not those that were published")
    }
    do throws(EngineError) {
      try received.finish()
    } catch {
      throw error.isDamage ? damage(checkpoint, "\(error)") : .engine(error)
    }
  }

  private func damage(_ checkpoint: PublishedCheckpoint, _ reason: String) -> ClusterError {
    .damagedCheckpoint(checkpoint.lsn, reason)
  }

  private func synchronizeDirectory() throws(ClusterError) {
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { if descriptor >= 0 { close(descriptor) } }
    guard descriptor >= 0, fsync(descriptor) == 0 else {
      throw .files("synchronize \(directory): \(String(cString: strerror(errno)))")
    }
  }
}
