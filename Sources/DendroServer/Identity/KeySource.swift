/// Where the keys of tokens come from.
protocol KeySource: Sendable {
  /// The keys as they are now; nil while there are none.
  var keys: KeySet? { get }
  /// A token names a key that is not there.
  ///
  /// - Parameter now: in seconds since 1970.
  func miss(at now: Int64)
  /// Called once a second.
  func refresh(at now: Int64)
  /// Nothing is refreshed any more.
  func end()
}
