import DendroTree

extension Database {
  /// How data is written as JSON. By default compact, and as ``DataSnapshot/value`` shows it.
  public struct JSONFormat: OptionSet, Hashable, Sendable {
    /// One bit for each option.
    public let rawValue: Int

    /// Makes a format of bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Each entry on a line of its own, indented by two spaces a level.
    public static let pretty = JSONFormat(rawValue: 1)
    /// With priorities, as ``DataSnapshot/valueInExportFormat()`` shows it: of a leaf with a priority as `.value` and
    /// `.priority`. Read again it makes the same data; without them the priorities are missing.
    public static let priorities = JSONFormat(rawValue: 2)

    var style: JSONStyle {
      JSONStyle(contains(.priorities) ? .export : .value, isPretty: contains(.pretty))
    }
  }
}
