import DendroStorage

/// What goes wrong with an open database, as it is counted.
///
/// The raw values are the labels of a server's figures: they stay.
package enum FailureKind: String, CaseIterable, Hashable, Sendable {
  /// Opening has cut a torn tail off the log.
  case tornTail = "torn_tail"
  /// Opening could not read a checkpoint, and another one or the log served.
  case unreadableCheckpoint = "unreadable_checkpoint"
  /// A part of the checkpoint that was opened is damaged: what needs it fails.
  case damage
  /// No checkpoint could be taken.
  case checkpoint
  /// The disk had no room for a batch.
  case diskFull = "disk_full"
  /// The directory was moved or replaced, so that another process may write there.
  case ownershipLost = "ownership_lost"
  /// The disk has refused something else, and its state is unknown.
  case disk

  /// What a refusal of the disk is.
  init(_ error: StorageError, isFull: Bool) {
    if case .ownershipLost = error {
      self = .ownershipLost
    } else {
      self = isFull ? .diskFull : .disk
    }
  }
}

extension LogEvent {
  /// A part of the checkpoint that cannot be read.
  static func damage(_ error: StorageError) -> LogEvent {
    LogEvent(
      .error, "a part of the data is damaged: what needs it fails", ["error": error.description],
      failure: .damage)
  }

  /// A checkpoint that was not taken; that a database is closed meanwhile is no failure.
  static func noCheckpoint(_ error: EngineError) -> LogEvent {
    LogEvent(
      .warning, "no checkpoint could be taken", ["error": error.description],
      failure: error == .closed ? nil : .checkpoint)
  }
}
