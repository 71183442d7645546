import DendroStorage

// The tables by which a command has all servers of a namespace hash the same state.

extension ClusterSession {
  /// Says that this server keeps the states behind its batches, or what it has found.
  ///
  /// - Parameters:
  ///   - answer: nil: that it keeps states for the request.
  ///   - lsn: the last write that it has.
  func verified(
    _ answer: VerificationAnswer?, of request: [UInt8], by server: ServerID,
    at lsn: LogSequenceNumber
  ) throws(ClusterError) {
    let (kind, data, system): (Int64, UInt64, UInt64) =
      switch answer.map(\.hashes) {
      case nil: (0, 0, 0)
      case .some(nil): (1, 0, 0)
      case .some(let hashes?): (2, hashes.data, hashes.system)
      }
    _ = try execute(
      """
      INSERT INTO dendro.verified (namespace, request, server, kind, lsn, data, system)
      VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (namespace, request, server)
      DO UPDATE SET kind = $4, lsn = $5, data = $6, system = $7
      """,
      [
        namespace, .bytes(request), .bytes(server.bytes), .integer(kind),
        .integer(Int64(clamping: lsn.rawValue)), .integer(Int64(bitPattern: data)),
        .integer(Int64(bitPattern: system)),
      ])
  }
}
