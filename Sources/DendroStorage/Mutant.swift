/// The guards of storage and engine, each of which can be switched off.
///
/// A guard that no test misses is not known to work. In a build with `DENDRO_MUTANTS` in the environment,
/// `crashlab mutants` plants one after the other and shows which of the lab's sweeps notices. In every
/// other build `isPlanted` is the constant false, and the guards are compiled as if it were not there.
///
/// Public since the optimizer looks into another module's members only if they are.
public enum Mutant: UInt8, CaseIterable, Hashable, Sendable {
  // The log's records
  case recordHeaderChecksum
  case recordPlace
  case payloadChecksum
  case recordChain
  case recordSequence
  case recordShape
  case declaredSize
  case recordCount
  case recordWrites
  case durableBound
  case payloadBound
  case shortestVarint
  case varintWidth

  // Segments
  case fileHeaderChecksum
  case formatVersion
  case reservedZero
  case segmentSalt
  case drawnSalt
  case segmentName
  case databaseIdentity
  case sealedSuccessor
  case missingSuccessor
  case segmentChain
  case firstSegment

  // The end of the log
  case provenDurable
  case tornTail
  case undecidableTold
  case tailLimit
  case zeroTail
  case secondLook
  case wrongBlock
  case rolledMeanwhile
  case checkpointProof
  case logReachesCheckpoint
  case cutBeforeAppend
  case repairSynchronize
  case repairRewrites
  case repairLonger
  case repairMark
  case repairCut
  case repairDirectorySynchronize
  case repairSeal
  case repairSealSynchronize
  case setAside
  case setAsideSynchronize
  case tornCopies
  case fullDiskOpens

  // Writing the log
  case recordDurableUpTo
  case markAtClose
  case closeSynchronize
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
  case sealRoom
  case takenBackOrder
  case takenBackSynchronize
  case sealSynchronize
  case segmentIdentity

  // Checkpoints
  case checkpointSynchronize
  case checkpointRename
  case checkpointDirectorySynchronize
  case checkpointBarrier
  case checkpointOwnership
  case checkpointPause
  case checkpointName
  case chunkHeaderChecksum
  case chunkChecksum
  case chunkOrder
  case chunkKind
  case footerChecksum
  case footerNumber
  case indexSizes
  case indexPlace
  case indexEntries
  case indexEnd
  case checkpointDepth
  case leafCount
  case olderCheckpoint
  case checkpointRefusal
  case checkpointVersion
  case replayFilter

  // Removing
  case deleteAfterCheckpoint
  case twoCheckpoints
  case unreadableCheckpoint
  case removalOrder
  case removalSynchronize
  case historyKept
  case rebuildingPin
  case followerPin
  case followerLimit
  case thinning
  case purgeReadBack
  case purgeTorn
  case temporaries
  case foreignFiles

  // Reading the past
  case historyGap
  case changesGap
  case changesDurable
  case cursorLook
  case followerWoken
  case followerEnds
  case followerCancelled
  case followerMoves
  case followerLeaves

  // The directory
  case directorySynchronize
  case writerLock
  case lockIdentity
  case lockReleased
  case ownership
  case readersLock
  case readerPatience
  case readOnly
  case readOnlyWrites
  case forkCheck
  case privateFiles

  // The system
  case interruption
  case interruptionLimit
  case shortWrite
  case shortRead
  case zeroWrite
  case systemSynchronize
  case systemDirectorySynchronize
  case closeOnExec
  case standardStreams
  case namedPipe
  case pathNul

  // Commits
  case acknowledgeAfterSynchronize
  case synchronizeBarrier
  case intervalSynchronize
  case durableKnowledge
  case doubtTold
  case unreportedTold
  case closeTells
  case refuseClosed
  case lateAnswers
  case releaseCloses
  case undo
  case undoOrder
  case undoEvents
  case undoGathered
  case undoNumbers
  case spaceProbe
  case answerOrder
  case wholeUpdate
  case validation
  case monotonicTime
  case writeLimit
  case memoryLimit
  case memoryRemoval
  case backlogBound
  case taskBacklog
  case taskPassesOn
  case refusalOrder
  case barrierClosed
  case hookQueue
  case hookLimit
  case hookSums

  // Transactions
  case transactionConflict
  case transactionReservation
  case reservationPatience
  case transactionRunLimit
  case heldWrites
  case heldWriteLimit
  case transactionsSerial
  case transactionsWaiting
  case transactionDifference
  case transactionClosed
  case reservationTimer
  case closeHeldWrites
  case abortOrder
  case deferredValues

  // Backups
  case backupBarrier
  case backupPlace
  case backupRemoved
  case backupOthers

  // The application
  case eventOrder
  case completionOrder
  case listenerBacklog
  case registrationMoment
  case firstEvents
  case removedListener
  case singleEvent
  case unchangedValue
  case wholeUpdateTold
  case closeDelivers
  case closeCancels
  case queueReplaced
  case staleDrain
  case callsLeft
  case drainQuantum
  case sequenceWoken
  case sequenceEnds
  case sequenceCancelled
  case disconnectAtOffline
  case disconnectAtClose
  case disconnectAtRelease

  // Bytes that nobody has checked
  case byteBound
  case countBound
  case depthBound
  case pathDepth
  case emptyNode
  case priorityKind
  case payloadEnd

  /// Of a guard that says again what another one implies: that one, which has to be switched off besides
  /// for anything to be seen.
  package var twin: Mutant? {
    switch self {
    case .logReachesCheckpoint: .checkpointProof
    case .resumeSynchronize: .repairCut
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
    public var isPlanted: Bool { Self.planted[Int(rawValue)] }
  }
#else
  extension Mutant {
    /// Whether this build can plant any.
    package static var isBuilt: Bool { false }

    /// Names, with commas between them.
    package static let variable = "DENDRO_PLANTED"

    /// Never: the guard is there.
    @inlinable @inline(__always)
    public var isPlanted: Bool { false }
  }
#endif
