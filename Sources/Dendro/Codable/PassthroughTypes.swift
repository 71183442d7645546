/// Decides which values a coder leaves unchanged.
///
/// The encoder does not encode values for which ``isPassthroughType(_:)`` is true, but returns them as they
/// are. The decoder returns such a value if it has the requested type.
public protocol StructureCodingPassthroughTypeResolver: SendableMetatype {
  /// Whether a value is left as it is.
  static func isPassthroughType<T>(_ value: T) -> Bool
}

/// Leaves nothing as it is.
enum NoPassthroughTypes: StructureCodingPassthroughTypeResolver {
  static func isPassthroughType<T>(_ value: T) -> Bool { false }
}
