import DendroEngine
import DendroStorage

extension ClusterNode {
  /// The data behind a batch, if the comparison of all servers wants it and the engine still has it.
  func wantedRoots(at lsn: LogSequenceNumber?) -> TreeRoots? {
    guard let lsn, verifier.wantsState else { return nil }
    return (try? withEngine { $0.roots(at: lsn) }) ?? nil
  }

  /// Keeps the data behind a batch that stands, if the comparison of all servers wants it.
  ///
  /// - Parameter roots: the data, if they were found before.
  func keepRoots(_ roots: TreeRoots? = nil, at lsn: LogSequenceNumber?) {
    guard let lsn, let roots = roots ?? wantedRoots(at: lsn) else { return }
    verifier.keep(roots, at: lsn)
  }

  /// Does this server's part in a comparison of all servers, and says in PostgreSQL what has come of it.
  ///
  /// - Parameters:
  ///   - request: as PostgreSQL has it; nil if there is none.
  ///   - lsn: up to where this server has the log.
  func verify(
    _ request: VerificationRequest?, _ session: ClusterSession, at lsn: LogSequenceNumber
  ) throws(ClusterError) {
    switch verifier.step(request, at: lsn) {
    case .nothing: return
    case .begin:
      // The leader may have appended more since; that was kept then.
      keepRoots(at: lsn)
      keepRoots(at: leadership.epoch == nil ? nil : leadership.position?.lsn)
      guard let request else { return }
      try session.verified(nil, of: request.id, by: settings.serverID, at: lsn)
    case .answer(let answer):
      try session.verified(answer, of: answer.request, by: settings.serverID, at: answer.lsn)
    }
  }
}
