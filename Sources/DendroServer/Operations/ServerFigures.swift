import DendroEngine
import DendroPlatform
import DendroStorage
import Synchronization

/// What a server counts while it runs.
final class ServerFigures: Sendable {
  /// From the admission of a write to its acknowledgement.
  let writes = Histogram()
  let requestCount = Atomic<UInt64>(0)
  let failureCount = Atomic<UInt64>(0)
  let receivedByteCount = Atomic<UInt64>(0)
  let messageCount = Atomic<UInt64>(0)
  let resumedListenCount = Atomic<UInt64>(0)

  /// - Parameter isState: whether the status is what was asked for, and no failure.
  func noteAnswer(_ status: Int, isState: Bool = false) {
    requestCount.wrappingAdd(1, ordering: .relaxed)
    if status >= 500, !isState { failureCount.wrappingAdd(1, ordering: .relaxed) }
  }

  func noteReceived(_ byteCount: Int) {
    receivedByteCount.wrappingAdd(UInt64(byteCount), ordering: .relaxed)
  }

  func noteMessage(_ byteCount: Int) {
    messageCount.wrappingAdd(1, ordering: .relaxed)
    noteReceived(byteCount)
  }

  /// A client that listens again gets only what has changed.
  func noteResumedListen() { resumedListenCount.wrappingAdd(1, ordering: .relaxed) }

  /// The memory of this process in bytes; 0 if the system does not say it.
  static var residentByteCount: Int {
    guard let file = fopen("/proc/self/statm", "re") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    let words = line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      .split(separator: UInt8(ascii: " "))
    guard words.count > 1, let pages = Int(String(decoding: words[1], as: UTF8.self)) else {
      return 0
    }
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }
}

extension RESTService {
  /// The figures of `/.metrics`.
  func metrics() -> String {
    var text = PrometheusText()
    text.histogram(
      "dendro_write_seconds", "From the admission of a client's write to its acknowledgement.",
      figures.writes)
    if let flushes = namespaces.flushes {
      text.histogram("dendro_flush_seconds", "Synchronizes of the log.", flushes)
    }
    text.counter(
      "dendro_requests_total", "Requests that were answered.",
      figures.requestCount.load(ordering: .relaxed))
    text.counter(
      "dendro_request_failures_total",
      "Requests answered with a status of 500 or above, without those for /.leader.",
      figures.failureCount.load(ordering: .relaxed))
    text.counter(
      "dendro_resumed_listens_total", "Listens whose clients got only what had changed.",
      figures.resumedListenCount.load(ordering: .relaxed))
    text.counter(
      "dendro_messages_total", "Messages of sessions.",
      figures.messageCount.load(ordering: .relaxed))
    text.counter(
      "dendro_received_bytes_total", "Bytes of bodies and messages of clients.",
      figures.receivedByteCount.load(ordering: .relaxed))
    let sessions = sessions.all
    text.gauge(
      "dendro_sessions", "WebSockets that are open, and clients that poll.", sessions.count)
    text.gauge("dendro_held_polls", "Polls that wait for a message.", polls.heldCount)
    text.gauge("dendro_streams", "Event streams that are open.", streamCount)
    text.gauge(
      "dendro_listens", "Listens of sessions.", sessions.reduce(0) { $0 + $1.listenCount })
    text.gauge(
      "dendro_outbox_bytes", "What waits for sessions to be read.",
      sessions.reduce(0) { $0 + $1.connection.waitingByteCount })
    text.gauge(
      "dendro_session_bytes", "What sessions have in memory.", self.sessions.accounts.byteCount)
    text.gauge(
      "dendro_resident_bytes", "The memory of the process.", ServerFigures.residentByteCount)
    text.gauge(
      "dendro_waiting_last_writes", "Last writes of sessions that wait for room on the disk.",
      namespaces.all.reduce(0) { $0 + ($1.journal?.refusedCount ?? 0) })
    appendFailures(to: &text)
    appendDatabases(to: &text)
    appendPeers(to: &text)
    return text.text
  }

  /// Every kind, also those that have not happened: an alert can rely on them.
  private func appendFailures(to text: inout PrometheusText) {
    let counts = namespaces.failureCounts
    let ofOpened = FailureKind.allCases.map { ($0.rawValue, counts[$0] ?? 0) }
    let all = [("opening", namespaces.failureCount)] + ofOpened
    text.append(
      "dendro_failures_total", kind: "counter", help: "What has gone wrong with databases.",
      values: all.map { ("kind=\"\($0.0)\"", "\($0.1)") })
  }

  private func appendDatabases(to text: inout PrometheusText) {
    let databases = namespaces.all.sorted { $0.name < $1.name }.map {
      (label: "database=\"\($0.name)\"", statistics: $0.engine.statistics())
    }
    func append(
      _ name: String, kind: String, help: String, value: (EngineStatistics) -> UInt64
    ) {
      let values = databases.map { ($0.label, "\(value($0.statistics))") }
      text.append(name, kind: kind, help: help, values: values)
    }
    append("dendro_last_lsn", kind: "gauge", help: "The last admitted write.") {
      $0.lastLSN.rawValue
    }
    append("dendro_durable_lsn", kind: "gauge", help: "The last write that is on the disk.") {
      $0.durableLSN.rawValue
    }
    append(
      "dendro_backlog_writes", kind: "gauge", help: "Admitted writes that are not on the disk yet."
    ) {
      $0.lastLSN.rawValue - min($0.lastLSN.rawValue, $0.durableLSN.rawValue)
    }
    append("dendro_writes_total", kind: "counter", help: "Writes since opening.") { $0.writeCount }
    append("dendro_flushes_total", kind: "counter", help: "Synchronizes since opening.") {
      $0.synchronizeCount
    }
    append(
      "dendro_log_bytes_total", kind: "counter", help: "Bytes appended to the log since opening."
    ) {
      $0.logByteCount
    }
    append(
      "dendro_log_bytes_since_checkpoint", kind: "gauge", help: "What an opening would replay."
    ) {
      $0.logBytesSinceCheckpoint
    }
    append("dendro_checkpoint_bytes", kind: "gauge", help: "Bytes of the newest checkpoint.") {
      $0.checkpointByteCount
    }
  }
}
