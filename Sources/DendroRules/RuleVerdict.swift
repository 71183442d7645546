/// Whether a request is allowed, and what was asked for with it.
public struct RuleVerdict: Sendable {
  /// Whether the request is allowed.
  public let isAllowed: Bool
  /// The steps that it took, of ``RuleLimits/steps`` and ``RuleLimits/stepsPerLocation``.
  public let stepCount: Int
  /// Nil for most verdicts. A class, so that a copy counts one reference instead of several.
  private let details: Details?

  /// Each rule on the way with its result; nil unless ``RuleDetails/trace`` was asked for.
  public var trace: RuleTrace? { details?.trace }
  /// What the verdict depends on; nil unless ``RuleDetails/observations`` was asked for.
  public var observations: RuleObservations? { details?.observations }

  private final class Details: Sendable {
    let trace: RuleTrace?
    let observations: RuleObservations?

    init(_ trace: RuleTrace?, _ observations: RuleObservations?) {
      self.trace = trace
      self.observations = observations
    }
  }

  init(isAllowed: Bool, stepCount: Int) {
    self.isAllowed = isAllowed
    self.stepCount = stepCount
    details = nil
  }

  init(
    isAllowed: Bool, stepCount: Int, trace: RuleTrace?, observations: RuleObservations?
  ) {
    self.isAllowed = isAllowed
    self.stepCount = stepCount
    details = Details(trace, observations)
  }
}
