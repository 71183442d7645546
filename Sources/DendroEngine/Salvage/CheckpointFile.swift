import DendroStorage
import DendroTree

/// A checkpoint of a directory that may be damaged: its reader, or what can be read of it without one.
struct CheckpointFile {
  private enum State {
    case readable(CheckpointReader)
    /// Header, footer or index cannot be read.
    case damaged(String)
  }

  private let directory: DatabaseDirectory
  let lsn: LogSequenceNumber
  private let state: State
  /// What a damaged one has; nil for one whose header cannot be read, or is another's.
  private let rest: CheckpointSalvage?
  /// The header of what stands under a name that is not its own.
  private let misnamed: CheckpointHeader?

  /// - Throws: `.io`; `.unsupportedVersion`.
  init(_ directory: DatabaseDirectory, _ lsn: LogSequenceNumber) throws(StorageError) {
    self.directory = directory
    self.lsn = lsn
    do throws(StorageError) {
      state = .readable(try CheckpointReader.open(directory, lsn: lsn))
      rest = nil
      misnamed = nil
    } catch {
      guard error.isCorrupt else { throw error }
      state = .damaged(error.description)
      rest = try Self.rest(directory, lsn)
      misnamed = rest == nil ? try CheckpointSalvage.header(directory, lsn: lsn) : nil
    }
  }

  /// Nil if it cannot be read.
  var header: CheckpointHeader? {
    if case .readable(let reader) = state { return reader.header }
    return rest?.header ?? misnamed
  }

  /// What can be used of it.
  ///
  /// - Throws: `.io`.
  func judged(
    in databaseID: DatabaseID?, _ links: LogLinks,
    progress: (@Sendable (RecoveryProgress) -> Void)?
  ) throws(StorageError) -> Salvage.Checkpoint {
    var checkpoint = Salvage.Checkpoint(lsn: lsn)
    switch state {
    case .readable(let reader):
      checkpoint.problem = Self.strangeness(reader.header, reader.path, databaseID, links)
      if checkpoint.problem != nil { return checkpoint }
      checkpoint.problem = try Self.damage(of: reader, progress)
      guard checkpoint.problem != nil else { return checkpoint }
      if let rest = try Self.rest(directory, lsn) { checkpoint.partial = try Self.partial(rest) }
    case .damaged(let problem):
      checkpoint.problem = problem
      guard let rest else { return checkpoint }
      if let problem = Self.strangeness(rest.header, rest.path, databaseID, links) {
        checkpoint.problem = problem
      } else {
        checkpoint.partial = try Self.partial(rest)
      }
    }
    return checkpoint
  }

  /// What is left of the trees of a damaged checkpoint.
  private static func partial(
    _ rest: CheckpointSalvage
  ) throws(StorageError) -> PartialCheckpoint? {
    guard let partial = try PartialCheckpoint(rest) else { return nil }
    if partial.isWhole, let footer = rest.footer,
      CheckpointCoding.contentHash(of: partial.data.root) != footer.contentHash
    {
      return nil
    }
    return partial
  }

  private static func rest(
    _ directory: DatabaseDirectory, _ lsn: LogSequenceNumber
  ) throws(StorageError) -> CheckpointSalvage? {
    do throws(StorageError) {
      return try CheckpointSalvage(directory, lsn: lsn)
    } catch {
      guard error.isCorrupt else { throw error }
      return nil
    }
  }

  /// Why a checkpoint is not one of this log; nil if it may be.
  private static func strangeness(
    _ header: CheckpointHeader, _ path: String, _ databaseID: DatabaseID?, _ links: LogLinks
  ) -> String? {
    if header.databaseID != databaseID {
      return "\(path) is of the database \(header.databaseID)"
    }
    guard header.lsn.rawValue < 1 << 63 else {
      return "\(path) has the number of a write over the limit"
    }
    return links.deny(header) ? "\(path) is the checkpoint of another log" : nil
  }

  /// What is wrong with a checkpoint that can be opened; nil if it is good.
  private static func damage(
    of reader: CheckpointReader, _ progress: (@Sendable (RecoveryProgress) -> Void)?
  ) throws(StorageError) -> String? {
    do throws(StorageError) {
      // The hash of the second root was compared when it was read.
      let roots = try CheckpointCoding.roots(reader, progress: progress)
      guard CheckpointCoding.contentHash(of: roots.data) == reader.contentHash else {
        return "\(reader.path) holds a tree with another hash than it says"
      }
      return nil
    } catch {
      guard error.isCorrupt else { throw error }
      return error.description
    }
  }
}

extension StorageError {
  fileprivate var isCorrupt: Bool {
    switch self {
    case .corrupt, .limit: true
    default: false
    }
  }
}
