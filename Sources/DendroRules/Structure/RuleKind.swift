/// What a rule decides. The raw value is its name in the text.
public enum RuleKind: String, Hashable, Sendable, CaseIterable {
  /// Whether what is there, and all below it, may be read.
  case read = ".read"
  /// Whether what is there, and all below it, may be written.
  case write = ".write"
  /// Whether the data that a write leaves there is valid.
  case validate = ".validate"
}
