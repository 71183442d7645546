/// Says which values a coder leaves as they are.
///
/// What the encoder meets and ``isPassthroughType(_:)`` names goes out unchanged; what the decoder finds
/// and it names is handed over if it is of the type that was asked for.
public protocol StructureCodingPassthroughTypeResolver: SendableMetatype {
  /// Whether a value is left as it is.
  static func isPassthroughType<T>(_ value: T) -> Bool
}

/// Leaves nothing as it is.
enum NoPassthroughTypes: StructureCodingPassthroughTypeResolver {
  static func isPassthroughType<T>(_ value: T) -> Bool { false }
}
