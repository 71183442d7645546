import DendroEngine
import DendroPlatform
import DendroStorage
import Foundation

/// Publishes one checkpoint, if it is due, and trims the log behind the one before: on a thread of its own, which waits for
/// the disk and PostgreSQL.
///
/// One server at a time holds the right to publish (`dendro.publisher`). The parts of an upload are sent as long as it does, so
/// that what belongs to no checkpoint can be removed by the next one that does. A checkpoint counts once it has its row, which
/// comes last.
struct CheckpointPublishing {
  private let node: ClusterNode
  private let settings: ClusterSettings
  private let session: ClusterSession
  private let upload: [UInt8]
  private let databaseID: DatabaseID

  private var publisher: CheckpointPublisher { node.publisher }

  private init(_ node: ClusterNode) throws(ClusterError) {
    self.node = node
    var settings = node.settings
    // To remove what is large may take long, and no write waits for it.
    settings.statementTimeout *= 6
    self.settings = settings
    let randomness = node.environment.randomness
    session = try ClusterSession(
      settings, node.publisher.interruption, newClusterID: randomness.bytes(ClusterID.byteCount))
    upload = randomness.bytes(PublishedCheckpoint.uploadByteCount)
    databaseID = session.clusterID.databaseID(of: settings.namespace)
  }

  /// - Returns: the bytes that the log gets before the next look.
  static func run(_ node: ClusterNode) -> Int64 {
    do throws(ClusterError) {
      return max(1, try CheckpointPublishing(node).run())
    } catch {
      if !node.publisher.isStopped {
        node.record(
          LogEvent(.warning, "no checkpoint could be published", ["error": "\(error)"]))
      }
      return max(1, node.settings.checkpointByteMin / 4)
    }
  }

  private func run() throws(ClusterError) -> Int64 {
    let newest = try session.checkpoints().first
    var due = max(settings.checkpointByteMin, (newest?.byteCount ?? 0) / 2)
    // Followers have more time for it: where there are some, one of them is first.
    if node.currentStatus.role == .leading { due += due / 2 }
    let byteCount = try session.logByteCount(behind: newest?.lsn ?? .zero, limit: due)
    guard byteCount >= due else { return due - byteCount }
    guard try begin() else { return due / 4 }
    defer { try? session.endUpload(upload) }
    let trimming = try LogTrimming(session, settings, upload)
    guard let checkpoint = try publish(behind: newest?.lsn ?? .zero) else { return due / 4 }
    node.record(
      LogEvent(
        .info, "a checkpoint is published",
        ["lsn": "\(checkpoint.lsn)", "bytes": String(checkpoint.byteCount)]))
    let end = try trimming.run { publisher.interruption.wait($0) }
    if let end { node.record(LogEvent(.info, "the log is trimmed", ["upTo": "\(end)"])) }
    return due
  }

  /// - Returns: whether this server has the right to publish now.
  private func begin() throws(ClusterError) -> Bool {
    let other = try session.publisher()
    if let other, other.server != settings.serverID,
      !publisher.isAbandoned(other, after: settings.publisherDelay)
    {
      return false
    }
    return try session.beginUpload(upload, by: settings.serverID, insteadOf: other)
  }

  // MARK: The checkpoint

  /// - Returns: nil if the server has no state behind the newest checkpoint now, if it stops, or if another one publishes.
  private func publish(
    behind newest: LogSequenceNumber
  ) throws(ClusterError) -> PublishedCheckpoint? {
    let name = upload.map { String($0, radix: 16) }.joined(separator: "-")
    let path = "\(node.directory)/\(Self.prefix)\(name)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    guard let (file, position) = try write(to: path, behind: newest) else { return nil }
    defer { file.close() }
    return try send(file, at: position)
  }

  /// Writes a checkpoint of a state at the end of a batch. Only for that time the state is kept.
  private func write(
    to path: String, behind newest: LogSequenceNumber
  ) throws(ClusterError) -> (SharedCheckpoint, LogPosition)? {
    guard let offer = publisher.receive(within: settings.publisherDelay / 2),
      offer.position.lsn > newest
    else { return nil }
    var lastSign = ContinuousClock.now
    let isCancelled = {
      if publisher.isStopped { return true }
      if .now - lastSign < settings.beatInterval { return false }
      lastSign = .now
      return (try? session.goOn(upload)) != true
    }
    let file = try ClusterError.ofEngine { () throws(EngineError) in
      try SharedCheckpoint.write(
        offer.state, databaseID: databaseID, to: path, environment: node.environment,
        isCancelled: isCancelled)
    }
    return file.map { ($0, offer.position) }
  }

  private func send(
    _ file: SharedCheckpoint, at position: LogPosition
  ) throws(ClusterError) -> PublishedCheckpoint? {
    let hash = CheckpointHash(at: position)
    var number: Int64 = 0
    var byteCount: Int64 = 0
    let reader = try ClusterError.ofEngine { () throws(EngineError) in
      try file.reader(partByteCount: settings.partByteCount)
    }
    while let part = try Self.next(of: reader) {
      if publisher.isStopped { return nil }
      guard try session.send(part, number, of: upload) else { return nil }
      hash.update(part)
      number += 1
      byteCount += Int64(part.count)
    }
    let checkpoint = PublishedCheckpoint(
      upload: upload, position: position, partCount: number, byteCount: byteCount,
      hash: hash.finish())
    return try session.complete(checkpoint) ? checkpoint : nil
  }

  private static func next(of reader: CheckpointFileReader) throws(ClusterError) -> [UInt8]? {
    do throws(StorageError) {
      return try reader.next()
    } catch {
      throw .engine(.storage(error))
    }
  }

  // MARK: What a stopped server leaves

  /// How the names begin of the directories that checkpoints are written in.
  private static let prefix = "publishing-"

  /// Removes what an earlier run of the program has left of a checkpoint that it was about to publish.
  static func removeRest(in directory: String) {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    for name in names where name.hasPrefix(prefix) {
      try? FileManager.default.removeItem(atPath: directory + "/" + name)
    }
  }
}
