/// A small database of today's format, made the same way each time, with what must be found in it by
/// every later version.
package struct GoldenDatabase: Sendable {
  /// One word or two.
  package let name: String
  /// Name and content of each file, without locks.
  package let files: [(name: String, bytes: [UInt8])]
  package let facts: GoldenFacts
}

/// What is written beside a golden database, a line each.
package struct GoldenFacts: Hashable, Sendable {
  /// Of the files when they were made.
  package var format: UInt32
  package var lastLSN: UInt64
  package var leafCount: Int
  package var contentHash: UInt64
  /// How `dendro verify` ends.
  package var verifyStatus: Int32
  /// Of the second root; nil if the database was made without one.
  package var systemHash: UInt64?
  /// States of the past that can be read.
  package var history: [State] = []

  package struct State: Hashable, Sendable {
    package var lsn: UInt64
    package var contentHash: UInt64

    package init(lsn: UInt64, contentHash: UInt64) {
      self.lsn = lsn
      self.contentHash = contentHash
    }
  }

  init(
    format: UInt32, lastLSN: UInt64, leafCount: Int, contentHash: UInt64, verifyStatus: Int32
  ) {
    self.format = format
    self.lastLSN = lastLSN
    self.leafCount = leafCount
    self.contentHash = contentHash
    self.verifyStatus = verifyStatus
  }

  package var text: String {
    var lines = [
      "format \(format)", "last-lsn \(lastLSN)", "leaves \(leafCount)",
      "hash \(String(contentHash, radix: 16))", "verify \(verifyStatus)",
    ]
    if let systemHash { lines.append("system \(String(systemHash, radix: 16))") }
    lines += history.map { "history \($0.lsn) \(String($0.contentHash, radix: 16))" }
    return lines.map { $0 + "\n" }.joined()
  }

  /// Reads `text`; nil if it is none.
  package init?(text: String) {
    var words: [Substring: [Substring]] = [:]
    var history: [State] = []
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ")
      if parts.first == "history" {
        guard parts.count == 3, let lsn = UInt64(parts[1]), let hash = UInt64(parts[2], radix: 16)
        else { return nil }
        history.append(State(lsn: lsn, contentHash: hash))
      } else if let name = parts.first {
        words[name] = Array(parts.dropFirst())
      }
    }
    guard let format = words["format"]?.first.flatMap({ UInt32($0) }),
      let lsn = words["last-lsn"]?.first.flatMap({ UInt64($0) }),
      let leaves = words["leaves"]?.first.flatMap({ Int($0) }),
      let hash = words["hash"]?.first.flatMap({ UInt64($0, radix: 16) }),
      let status = words["verify"]?.first.flatMap({ Int32($0) })
    else { return nil }
    self.init(
      format: format, lastLSN: lsn, leafCount: leaves, contentHash: hash, verifyStatus: status)
    systemHash = words["system"]?.first.flatMap { UInt64($0, radix: 16) }
    self.history = history
  }
}
