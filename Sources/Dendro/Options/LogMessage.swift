extension Database {
  /// One line of what the database did.
  public struct LogMessage: Sendable {
    /// How much it matters.
    public enum Level: String, Sendable {
      /// For finding faults.
      case debug
      /// The ordinary course of things.
      case info
      /// Something was amiss and was dealt with.
      case warning
      /// Something was refused.
      case error
    }

    /// How much it matters.
    public let level: Level
    /// One sentence.
    public let message: String
    /// Details by name.
    public let metadata: [String: String]
  }
}
