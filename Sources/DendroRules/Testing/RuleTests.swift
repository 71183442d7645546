import DendroTree

/// Tests of rules, as JSON: requests, and what rules should say to them.
///
/// ```json
/// {
///   "data": {"users": {"ann": {"name": "Ann"}}},
///   "cases": [
///     {"name": "own name", "as": {"uid": "ann"}, "operation": "set", "path": "users/ann/name",
///      "value": "Anna", "expect": "allow"},
///     {"name": "another's name", "as": null, "operation": "read", "path": "users/ann",
///      "expect": "deny"}
///   ]
/// }
/// ```
///
/// Each case begins with the same data. The table says what a case may have.
///
/// | member | value |
/// | --- | --- |
/// | `name` | a string for the report |
/// | `as` | who asks: null, the claims of an ID token with `uid`, `user_id` or `sub`; or, with an object `token`, the variable `auth` itself |
/// | `operation` | `read`, `set`, `update`, `remove` or `setPriority` |
/// | `path` | the location; the root if it is missing |
/// | `value` | for writes; for an update an object of paths. Server values are replaced |
/// | `query` | for readings: `orderBy` (`$key`, `$value`, `$priority` or a path), `startAt`, `endAt`, `equalTo`, `limitToFirst`, `limitToLast` |
/// | `now` | milliseconds since 1970; 0 if it is missing |
/// | `expect` | `allow` or `deny` |
public struct RuleTests: Sendable {
  /// What a case does.
  public enum Operation: String, Hashable, Sendable {
    /// Reads a location.
    case read
    /// Replaces a location.
    case set
    /// Changes several locations at once.
    case update
    /// Removes a location.
    case remove
    /// Sets the priority of a location.
    case setPriority
  }

  /// One request and what rules should say.
  public struct Case: Sendable {
    /// What the report calls it.
    public let name: String
    /// What it does.
    public let operation: Operation
    /// Where it does so, as it is written.
    public let path: String
    /// Whether it should be allowed.
    public let isExpectedAllowed: Bool
    /// Its place in the text.
    public let position: TextPosition

    let request: RuleRequest
    /// The data after the write; nil for a reading.
    let newData: Node?
  }

  /// The data before each case.
  public var data: JSONTree { JSONTree(node) }
  /// In the order of the text.
  public let cases: [Case]

  let node: Node

  /// Reads tests.
  ///
  /// - Throws: ``RuleTextError`` if the text is not as described, at the value that is wrong.
  /// - Complexity: O(n).
  public init(_ text: String) throws(RuleTextError) {
    let bytes = Array(text.utf8)
    do throws(TextFailure) {
      let reader = TestReader(bytes)
      let (data, cases) = try reader.read(TextParser.parse(bytes, .strict))
      node = data
      self.cases = cases
    } catch {
      throw error.error(in: bytes)
    }
  }
}

extension RuleTests {
  /// Judges every case.
  ///
  /// - Complexity: O(cases · steps of each), which ``RuleLimits`` bounds.
  public func run(_ rules: Rules) -> RuleTestReport {
    var coverage = RuleCoverage(rules.program)
    let results = cases.map { `case` in
      let verdict = rules.decide(
        `case`.request, data: node, newData: `case`.newData, details: .trace)
      if let trace = verdict.trace { coverage.add(trace) }
      return RuleTestReport.Result(case: `case`, verdict: verdict)
    }
    return RuleTestReport(results: results, coverage: coverage)
  }
}
