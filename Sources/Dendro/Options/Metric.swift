extension Database {
  /// One figure of what the database did.
  public struct Metric: Sendable {
    /// How the values of one name go together.
    public enum Kind: String, Sendable {
      /// To be added up.
      case counter
      /// A level; the last one holds.
      case gauge
      /// Seconds that something took.
      case timer
    }

    /// Dotted, lower case.
    public let name: String
    /// How the values of one name go together.
    public let kind: Kind
    /// A count, a level, or seconds.
    public let value: Double
  }
}
