/// Finds out that another process goes by this server's name: its directory is a copy of this one's, or the other way round. Both
/// would take the leading from each other all the time.
struct Twin {
  /// Rises if another process has raised the counter since this one did, and falls if none has.
  private var count = 0

  private static let countMax = 3

  /// Whether another process was found to go by the same name.
  var isThere: Bool { count >= Self.countMax }

  /// - Parameters:
  ///   - last: the process that has raised the counter before this one did now.
  ///   - isFirst: whether this one had not raised it before, over this connection.
  /// - Throws: if another process does so too, and this is the one of the two that gives way.
  mutating func note(
    _ last: [UInt8]?, own: [UInt8], isFirst: Bool
  ) throws(ClusterError) {
    if isFirst { return }
    guard let last, last != own else {
      // It may raise it less often.
      count = max(0, count - 1)
      return
    }
    count += 1
    // Once may mean that PostgreSQL was set back, to the process before this one.
    guard isThere, own.lexicographicallyPrecedes(last) else { return }
    throw .otherCluster(
      """
      another process goes by the name of this server: the directory of one is a copy of the other's, without which it has to be \
      started again
      """)
  }
}
