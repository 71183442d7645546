extension Database {
  /// How far opening has come.
  public struct OpeningProgress: Hashable, Sendable {
    /// What is being read.
    public enum Phase: String, Sendable {
      /// The newest checkpoint.
      case checkpoint
      /// The log since.
      case log
    }

    /// What is being read.
    public let phase: Phase
    /// Bytes of this phase that were read.
    public let completedByteCount: UInt64
    /// Bytes of this phase in all.
    public let totalByteCount: UInt64
  }
}
