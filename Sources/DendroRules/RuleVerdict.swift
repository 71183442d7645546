/// Whether a request is allowed, and what was asked for with it.
public struct RuleVerdict: Sendable {
  /// Whether the request is allowed.
  public let isAllowed: Bool
  /// The steps that it took, of ``RuleLimits/steps`` and ``RuleLimits/stepsPerLocation``.
  public let stepCount: Int
  /// Each rule on the way with its result; nil unless ``RuleDetails/trace`` was asked for.
  public let trace: RuleTrace?
  /// What the verdict depends on; nil unless ``RuleDetails/observations`` was asked for.
  public let observations: RuleObservations?
}
