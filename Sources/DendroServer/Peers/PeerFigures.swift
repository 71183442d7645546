extension RESTService {
  /// The figures of databases that several servers have.
  func appendPeers(to text: inout PrometheusText) {
    let peers = namespaces.all.sorted { $0.name < $1.name }.compactMap { namespace in
      namespace.peerStatus.map { (label: "database=\"\(namespace.name)\"", status: $0) }
    }
    func append(_ name: String, kind: String, help: String, value: (PeerStatus) -> String) {
      text.append(
        "dendro_cluster_\(name)", kind: kind, help: help,
        values: peers.map { ($0.label, value($0.status)) })
    }
    append("leader", kind: "gauge", help: "1 if this server leads.") {
      $0.role == .leader ? "1" : "0"
    }
    append("epoch", kind: "gauge", help: "How often the leading has changed hands.") {
      "\($0.epoch)"
    }
    append("lag_writes", kind: "gauge", help: "Writes that this server has still to take.") {
      "\($0.lag)"
    }
    append("appends_total", kind: "counter", help: "Batches that this server has appended.") {
      "\($0.appendCount)"
    }
    append(
      "append_seconds_total", kind: "counter",
      help: "How long they took, from the moment at which each was ready."
    ) {
      "\($0.appendSeconds)"
    }
    append("undecided_total", kind: "counter", help: "Those of which an answer was missing.") {
      "\($0.undecidedCount)"
    }
    append("takeovers_total", kind: "counter", help: "How often this server has begun to lead.") {
      "\($0.takeoverCount)"
    }
    append(
      "lines", kind: "gauge",
      help: "Servers with a line to this one, or 1 if this one has a line to the leader."
    ) {
      "\($0.lineCount)"
    }
    append(
      "trouble", kind: "gauge",
      help: "1 if this server cannot reach the others, or takes no part any more."
    ) {
      $0.trouble == nil ? "0" : "1"
    }
  }
}
