/// The guards of storage and engine, each of which can be switched off.
///
/// A guard that no test misses is not known to work. In a build with `DENDRO_MUTANTS` in the environment,
/// `crashlab mutants` plants one after the other and shows which of the lab's sweeps notices. In every
/// other build `isPlanted` is the constant false, and the guards are compiled as if it were not there.
package enum Mutant: UInt8, CaseIterable, Hashable, Sendable {
  // The log's records
  case recordHeaderChecksum
  case recordPlace
  case payloadChecksum
  case recordChain
  case recordSequence
  case recordShape
  case declaredSize
  case recordCount
  case durableBound
  case shortestVarint
  case varintWidth

  // Segments
  case fileHeaderChecksum
  case formatVersion
  case reservedZero
  case segmentSalt
  case segmentName
  case databaseIdentity
  case sealedSuccessor
  case missingSuccessor
  case segmentChain
  case firstSegment

  // The end of the log
  case provenDurable
  case tornTail
  case zeroTail
  case checkpointProof
  case logReachesCheckpoint
  case cutBeforeAppend
  case repairSynchronize
  case repairRewrites
  case repairLonger
  case repairDirectorySynchronize
  case repairSeal
  case repairSealSynchronize
  case setAside
  case setAsideSynchronize

  // Writing the log
  case recordDurableUpTo
  case markAtClose
  case resumeSynchronize
  case writePoison
  case refusePoisoned
  case noRetry
  case cutBack
  case cutBackSynchronize
  case dropUnsynchronized
  case historyAfterDrop
  case historyAtRoll
  case rollSynchronize
  case segmentSynchronize
  case segmentRename
  case segmentDirectorySynchronize
  case rollTakenBack
  case sealSynchronize
  case segmentIdentity

  // Checkpoints
  case checkpointSynchronize
  case checkpointRename
  case checkpointDirectorySynchronize
  case checkpointBarrier
  case checkpointName
  case chunkHeaderChecksum
  case chunkChecksum
  case chunkOrder
  case footerChecksum
  case footerNumber
  case indexSizes
  case leafCount
  case olderCheckpoint
  case replayFilter

  // Removing
  case deleteAfterCheckpoint
  case twoCheckpoints
  case unreadableCheckpoint
  case removalOrder
  case removalSynchronize
  case foreignFiles

  // The directory
  case directorySynchronize
  case writerLock
  case ownership
  case readersLock
  case readOnly
  case forkCheck

  // Calls
  case interruption
  case interruptionLimit
  case shortWrite
  case shortRead

  // Commits
  case acknowledgeAfterSynchronize
  case undo
  case undoOrder
  case undoEvents
  case spaceProbe
  case answerOrder
  case wholeUpdate
  case monotonicTime
  case transactionConflict
  case writeLimit
  case memoryLimit

  // Bytes that nobody has checked
  case byteBound
  case countBound
  case depthBound
  case payloadEnd

  /// What holds while the guard is there.
  package var guards: String {
    switch self {
    case .recordHeaderChecksum: "a record's header is believed only under its checksum"
    case .recordPlace: "a record's header is valid at its own offset only"
    case .payloadChecksum: "a payload is believed only under its checksum"
    case .recordChain: "a record repeats the checksum of the one before it"
    case .recordSequence: "a record's first write follows the last one before it"
    case .recordShape: "a seal and a mark look as they should, and no unknown flag is set"
    case .declaredSize: "a declared size is bounded by what the stored bytes can hold"
    case .recordCount: "a record has no more writes than bytes"
    case .durableBound: "a record cannot say that writes of its own are durable"
    case .shortestVarint: "a varint has its shortest form"
    case .varintWidth: "a varint fits into 64 bits"
    case .fileHeaderChecksum: "a file's header is believed only under its checksum"
    case .formatVersion: "a format of the future is refused"
    case .reservedZero: "reserved bytes of a header are zero"
    case .segmentSalt: "each segment draws a salt of its own"
    case .segmentName: "a segment begins with the write that its name tells"
    case .databaseIdentity: "every file carries the identity of this database"
    case .sealedSuccessor: "a seal names the one segment that may follow"
    case .missingSuccessor: "a seal without its successor tells that the segment is missing"
    case .segmentChain: "a segment repeats the last number and checksum of the one before it"
    case .firstSegment: "the log goes back to the checkpoint, or to the first write"
    case .provenDurable: "damage of what a later record calls durable is corruption, no torn tail"
    case .tornTail: "what a crash left is cut, not refused"
    case .zeroTail: "zeros are the end of the log only if nothing but zeros follows"
    case .checkpointProof:
      "a checkpoint proves the log up to it durable, whether it can be read or not"
    case .logReachesCheckpoint: "a log that ends before its checkpoint is refused"
    case .cutBeforeAppend: "a torn tail is cut before anything is appended"
    case .repairSynchronize: "what recovery cut is synchronized before anything is appended"
    case .repairRewrites: "a tail that may never have reached the disk is written anew"
    case .repairLonger: "a segment that is longer than its records is written anew"
    case .repairDirectorySynchronize:
      "recovery makes the names durable, also those of the crashed process"
    case .repairSeal: "recovery adds the seal that a crash in a roll left out"
    case .repairSealSynchronize:
      "recovery synchronizes a seal that the crashed process wrote"
    case .setAside: "torn bytes are kept in a file of their own"
    case .setAsideSynchronize: "torn bytes are durable in their own file before they are cut"
    case .recordDurableUpTo: "a record calls only that durable which was synchronized"
    case .markAtClose: "an orderly end tells that all before it is durable"
    case .resumeSynchronize: "what was resumed is synchronized before a new segment names it"
    case .writePoison: "after a failed synchronize the log takes nothing more"
    case .refusePoisoned: "a poisoned engine admits no write"
    case .noRetry: "a failed synchronize is never tried again"
    case .cutBack: "a failed append is cut back"
    case .cutBackSynchronize: "the cut is synchronized before anything is called durable"
    case .dropUnsynchronized: "what a failed synchronize refused is taken out of the file"
    case .historyAfterDrop: "the compression's history starts anew after a failed append"
    case .historyAtRoll: "the compression's history starts anew with a segment"
    case .rollSynchronize: "a segment is synchronized before its successor is made"
    case .segmentSynchronize: "a new segment's header is durable before its name"
    case .segmentRename: "a new segment gets its name only when it is whole"
    case .segmentDirectorySynchronize: "a new segment's name is durable before it is written to"
    case .rollTakenBack: "a roll without room for its seal takes the successor back"
    case .sealSynchronize: "a seal is durable before the next segment is used"
    case .segmentIdentity: "the segment is still the file at its path before each write"
    case .checkpointSynchronize: "a checkpoint is synchronized before it gets its name"
    case .checkpointRename: "a checkpoint gets its name only when it is whole"
    case .checkpointDirectorySynchronize: "a checkpoint's name is durable before it is relied on"
    case .checkpointBarrier: "the log holds durably what a checkpoint tells of"
    case .checkpointName: "a checkpoint holds the write that its name tells"
    case .chunkHeaderChecksum: "a chunk's header is believed only under its checksum"
    case .chunkChecksum: "a chunk is believed only under its checksum"
    case .chunkOrder: "a chunk has the number and the sizes that the index tells"
    case .footerChecksum: "a footer is believed only under its checksum"
    case .footerNumber: "header and footer tell of the same write"
    case .indexSizes: "the chunks fill the file, and are as large as the footer tells"
    case .leafCount: "the tree has as many leaves as the footer tells"
    case .olderCheckpoint: "where the newest checkpoint cannot be read the older one serves"
    case .replayFilter: "writes that the checkpoint has already are not applied again"
    case .deleteAfterCheckpoint: "files go only after the new checkpoint is durable"
    case .twoCheckpoints: "two checkpoints are kept, and the log back to the older one"
    case .unreadableCheckpoint: "a checkpoint that could not be read does not count"
    case .removalOrder: "segments go oldest first"
    case .removalSynchronize: "each removal is durable before the next"
    case .foreignFiles: "files of other names are never touched"
    case .directorySynchronize: "a new directory's name is durable before anything is acknowledged"
    case .writerLock: "one opener writes"
    case .ownership: "the directory is still ours before each write"
    case .readersLock: "nothing goes while a reader holds the directory"
    case .readOnly: "a reader changes nothing"
    case .forkCheck: "a fork is refused"
    case .interruption: "an interrupted call is made again"
    case .interruptionLimit: "a call that is interrupted without end is a failed one"
    case .shortWrite: "a short write is completed"
    case .shortRead: "a short read is completed"
    case .acknowledgeAfterSynchronize: "a write is acknowledged after the synchronize"
    case .undo: "what the disk refused is taken back"
    case .undoOrder: "what the disk refused is taken back newest first"
    case .undoEvents: "listeners are told what was taken back"
    case .spaceProbe: "a full disk that has room again takes writes again"
    case .answerOrder: "writes are answered in their order"
    case .wholeUpdate: "an update of many paths is one write"
    case .monotonicTime: "times never decrease, whatever the clock does"
    case .transactionConflict: "a transaction decides on what is there when it is admitted"
    case .writeLimit: "a write over the limit is refused"
    case .memoryLimit: "a tree over the memory limit takes no more"
    case .byteBound: "nothing is read past the end"
    case .countBound: "a count is bounded by the bytes that are left"
    case .depthBound: "the depth of what is decoded is bounded"
    case .payloadEnd: "a payload ends with its last write"
    }
  }

  /// Of a guard that is one of two for the same: what has to be switched off besides, for anything to
  /// be seen.
  package var twin: Mutant? {
    switch self {
    case .logReachesCheckpoint: .checkpointProof
    case .refusePoisoned: .writePoison
    default: nil
    }
  }

  package var name: String { "\(self)" }

  package init?(name: String) {
    guard let mutant = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = mutant
  }
}

#if DENDRO_MUTANTS
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  extension Mutant {
    /// Whether this build can plant any.
    package static let isBuilt = true

    /// Names, with commas between them.
    package static let variable = "DENDRO_PLANTED"

    /// Decided once, when the process begins.
    private static let planted: [Bool] = {
      var planted = Array(repeating: false, count: allCases.count)
      guard let value = getenv(variable) else { return planted }
      for name in String(cString: value).split(separator: ",") {
        guard let mutant = Mutant(name: String(name)) else {
          preconditionFailure("there is no mutant \(name)")
        }
        planted[Int(mutant.rawValue)] = true
      }
      return planted
    }()

    /// Whether the guard is switched off.
    package var isPlanted: Bool { Self.planted[Int(rawValue)] }
  }
#else
  extension Mutant {
    /// Whether this build can plant any.
    package static var isBuilt: Bool { false }

    /// Names, with commas between them.
    package static let variable = "DENDRO_PLANTED"

    /// Never: the guard is there.
    @inlinable @inline(__always)
    package var isPlanted: Bool { false }
  }
#endif
