/// How much rules and a verdict may take. What is beyond it is refused: a text with an error, a request
/// with a rule that is not true.
public enum RuleLimits {
  /// The longest text of rules, in bytes of UTF-8: 300 KB.
  public static let textBytes = 300 * 1024
  /// How deep objects of the text, brackets of an expression and groups of a pattern may be nested.
  public static let nesting = 100
  /// The steps of one verdict, beside those of ``stepsPerLocation``. An instruction is a step; a node that is validated
  /// is one, and long strings take further ones.
  public static let steps = 100_000
  /// The further steps of a verdict for each location below a written one that has data and is validated, and for each entry of
  /// an update behind the first. A priority adds none.
  public static let stepsPerLocation = 100
  /// The most keys of a location that a verdict looks at.
  public static let depth = 100
  /// The longest string that a rule may make by `+` and `replace()`, in bytes of UTF-8.
  public static let stringBytes = 10 * 1024 * 1024
  /// The longest name in an expression, in bytes of UTF-8.
  public static let nameBytes = 768
  /// The most characters and classes of a regular expression, after `{n,m}` is written out.
  public static let patternPositions = 1024
}
