/// How deep values may nest while they are encoded or decoded.
///
/// Counted in calls of `encode(to:)` and `init(from:)` and in nested containers, since these use up the
/// stack: a value that contains itself is refused here, before it ends the process. Data is at most 32 levels
/// deep, and a level takes one call, or a few if optionals and wrappers stand between.
enum CodingDepth {
  static let max = 128

  /// The error message for a `Database.Value`, which any coder may encode or decode.
  static var excess: String { "the value is deeper than \(max) levels" }
}
