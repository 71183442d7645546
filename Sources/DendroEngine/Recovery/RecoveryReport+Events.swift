import DendroStorage

extension RecoveryReport {
  /// What an opening for writing says in the log.
  var events: [LogEvent] {
    var events = unreadableCheckpoints.map { reason in
      LogEvent(
        .warning, "a checkpoint cannot be read, and an older state serves with more of the log",
        ["error": reason], failure: .unreadableCheckpoint)
    }
    if let tornTail {
      var details = ["found": tornTail, "bytes": String(tornByteCount)]
      if let tornFile { details["file"] = tornFile }
      events.append(
        LogEvent(.warning, "the torn end of the log was cut off", details, failure: .tornTail))
    }
    var details = [
      "lastLSN": lastLSN.description, "replayedWrites": String(replayedWriteCount),
      "replayedBytes": String(replayedByteCount),
      "milliseconds": String(Int64(elapsed / .milliseconds(1))),
    ]
    if let checkpointLSN { details["checkpointLSN"] = checkpointLSN.description }
    events.append(
      LogEvent(.info, created ? "a new database was made" : "the database is open", details))
    return events
  }
}
