import DendroTree

/// The most that one reading may show.
struct ReadLimit: Sendable {
  /// Of keys and values.
  let byteCount: Int
  /// Whether a node is larger than this is seen in less than a millisecond.
  private static let nearByteCount = 1 << 20

  /// Whether a node may be over the limit, so that seeing it may take long.
  ///
  /// - Complexity: O(1).
  func isNear(_ node: Node) -> Bool { node.isLarger(than: min(byteCount, Self.nearByteCount)) }

  /// Whether what a query shows of a node is over the limit.
  ///
  /// - Parameter query: nil for all of it.
  /// - Complexity: O(pages up to the limit), and that of the query if the node is over it.
  func isExceeded(by node: Node, _ query: QueryParameters? = nil) -> Bool {
    node.isLarger(than: byteCount)
      && (query == nil || node.filtered(by: query).isLarger(than: byteCount))
  }
}
