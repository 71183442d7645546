import DendroStorage

/// Which sweep is known to miss which guard: it is run first. Where that is no longer so, the others are
/// run after it; nothing else depends on this table.
enum KnownSweeps {
  /// Enough of a sweep that draws to meet what it is known to miss.
  private static let count = 200_000

  static func sweep(missing mutant: Mutant) -> MutantSweep.Plan? {
    byMutant[mutant].map { MutantSweep.Plan($0, count) }
  }

  private static let byMutant = Dictionary(
    uniqueKeysWithValues: table.flatMap { sweep, mutants in mutants.map { ($0, sweep) } })

  private static let table: [(sweep: String, mutants: [Mutant])] = [
    (
      "G1",
      [
        .recordHeaderChecksum, .payloadChecksum, .tornTail, .cutBeforeAppend, .repairSynchronize,
        .repairDirectorySynchronize, .repairSeal, .setAside, .segmentSynchronize, .segmentRename,
        .segmentDirectorySynchronize, .sealSynchronize, .checkpointSynchronize, .checkpointRename,
        .checkpointDirectorySynchronize, .directorySynchronize, .acknowledgeAfterSynchronize,
        .wholeUpdate,
      ]
    ),
    ("G3", [.setAsideSynchronize]),
    ("log", [.recordDurableUpTo, .cutBackSynchronize, .historyAtRoll]),
    ("seals", [.repairSealSynchronize]),
    ("kill-then-power-loss", [.removalOrder]),
    (
      "G5",
      [
        .repairRewrites, .repairLonger, .writePoison, .noRetry, .cutBack, .dropUnsynchronized,
        .rollSynchronize, .rollTakenBack, .checkpointBarrier, .interruption, .interruptionLimit,
        .shortRead, .undoOrder,
      ]
    ),
    ("full-disk", [.shortWrite, .undoEvents]),
    ("G15", [.countBound]),
    (
      "damaged-checkpoint",
      [.fileHeaderChecksum, .chunkHeaderChecksum, .chunkChecksum, .footerChecksum]
    ),
    ("missing-file", [.missingSuccessor]),
    ("lost-seals", [.segmentChain]),
    (
      "misplaced",
      [
        .recordPlace, .segmentSalt, .segmentName, .databaseIdentity, .sealedSuccessor,
        .firstSegment,
        .provenDurable, .zeroTail, .checkpointProof, .logReachesCheckpoint, .markAtClose,
        .checkpointName, .olderCheckpoint, .replayFilter, .deleteAfterCheckpoint, .twoCheckpoints,
        .unreadableCheckpoint,
      ]
    ),
    (
      "forgeries",
      [
        .recordChain, .recordSequence, .recordShape, .declaredSize, .recordCount,
        .recordWrites, .durableBound, .shortestVarint, .varintWidth, .formatVersion, .reservedZero,
        .chunkOrder, .chunkKind, .footerNumber, .indexSizes, .indexPlace, .indexEntries, .indexEnd,
        .leafCount, .checkpointDepth, .checkpointVersion, .byteBound,
      ]
    ),
    (
      "openers",
      [
        .segmentIdentity, .foreignFiles, .writerLock, .ownership, .readersLock, .readOnly,
        .readOnlyWrites, .forkCheck,
      ]
    ),
    (
      "rules",
      [
        .historyAfterDrop, .payloadBound, .undecidableTold, .undo, .spaceProbe, .answerOrder,
        .monotonicTime, .writeLimit, .memoryLimit, .memoryRemoval, .depthBound, .pathDepth,
        .payloadEnd,
        .emptyNode, .priorityKind,
      ]
    ),
    (
      "transactions",
      [
        .transactionConflict, .transactionReservation, .reservationPatience, .transactionRunLimit,
        .heldWrites, .heldWriteLimit,
      ]
    ),
    (
      "promises",
      [
        .refusePoisoned, .closeSynchronize,
        .checkpointPause, .synchronizeBarrier, .intervalSynchronize, .durableKnowledge, .doubtTold,
        .unreportedTold, .closeTells, .refuseClosed, .releaseCloses, .undoNumbers, .validation,
      ]
    ),
    (
      "ends",
      [
        .resumeSynchronize, .tornCopies, .fullDiskOpens, .sealRoom, .takenBackOrder,
        .takenBackSynchronize,
      ]
    ),
    ("backups", [.backupOthers, .backupBarrier, .backupPlace, .backupRemoved]),
    (
      "moments",
      [
        .secondLook, .wrongBlock, .rolledMeanwhile, .checkpointOwnership, .purgeReadBack,
        .changesDurable,
        .lockIdentity, .readerPatience, .zeroWrite, .lateAnswers, .undoGathered, .backlogBound,
      ]
    ),
    (
      "past",
      [
        .checkpointRefusal, .purgeTorn, .removalSynchronize, .historyKept, .rebuildingPin,
        .followerPin,
        .followerLimit, .thinning, .temporaries, .historyGap, .changesGap, .cursorLook,
      ]
    ),
    (
      "real-files",
      [
        .tailLimit, .privateFiles, .systemSynchronize, .systemDirectorySynchronize, .closeOnExec,
        .standardStreams, .namedPipe, .pathNul, .lockReleased,
      ]
    ),
    (
      "application",
      [
        .transactionsSerial, .transactionsWaiting, .eventOrder, .completionOrder, .listenerBacklog,
        .disconnectAtOffline,
        .disconnectAtClose, .disconnectAtRelease,
      ]
    ),
    (
      "waiting",
      [
        .taskBacklog, .taskPassesOn, .reservationTimer, .refusalOrder, .abortOrder,
        .closeHeldWrites, .transactionDifference, .barrierClosed, .transactionClosed, .hookQueue,
        .hookLimit, .hookSums, .followerWoken, .followerEnds, .followerCancelled, .followerMoves,
        .followerLeaves,
      ]
    ),
    (
      "listeners",
      [
        .firstEvents, .removedListener, .singleEvent, .unchangedValue, .wholeUpdateTold,
        .closeDelivers, .closeCancels, .queueReplaced, .staleDrain, .callsLeft, .drainQuantum,
        .sequenceWoken, .sequenceEnds, .sequenceCancelled, .deferredValues,
      ]
    ),
    ("G13", [.drawnSalt]),
    ("G18", [.registrationMoment]),
  ]
}
