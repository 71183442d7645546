/// Decides before each append whether the paths of the lock file and the segment are compared with the files
/// that are open.
///
/// A watch on the directory reports each name that changes in it, and so everything by which a second opener
/// could get in. It does not report the move of a directory above, which admits no second opener, since the
/// lock file moves along: a comparison once a second finds that.
struct PathComparison {
  /// Nil if the file system has none: the paths are compared each time.
  private let watch: (any DirectoryWatch)?
  /// Milliseconds since 1970.
  private var lastTime: Int64?

  private static let interval: Int64 = 1000

  /// The first comparison is due at once: names may have changed before the watch began.
  init(watch: (any DirectoryWatch)?) { self.watch = watch }

  /// Whether the paths are compared now.
  ///
  /// - Parameter now: milliseconds since 1970; may step back.
  mutating func isDue(at now: Int64) -> Bool {
    let hasChanged = watch?.hasChanged() ?? true
    if !hasChanged, let lastTime, now >= lastTime, now - lastTime < Self.interval { return false }
    lastTime = now
    return true
  }
}
