/// Collects what a trace shows, while a verdict is made.
struct TraceRecorder {
  private let program: RuleProgram
  private(set) var evaluations: [RuleEvaluation] = []
  private var values: [RuleEvaluation.Step] = []
  /// The evaluations that were too many.
  private(set) var omittedCount = 0
  private var stepCount = 0
  /// The expressions, so that all evaluations of a rule share one text.
  private var sources: [Int: String] = [:]
  private var rule = 0
  private var location = ""

  init(_ program: RuleProgram) { self.program = program }

  mutating func begin(_ rule: Int, _ location: String) {
    self.rule = rule
    self.location = location
    values = []
  }

  mutating func end(_ result: Result<Bool, Failure>) {
    guard evaluations.count < RuleTrace.evaluationCountMax else {
      omittedCount += 1
      return
    }
    let outcome: RuleEvaluation.Outcome
    switch result {
    case .success(let value): outcome = value ? .true : .false
    case .failure(let failure): outcome = .failed(failure.reason)
    }
    let source = sources[rule] ?? String(decoding: program.rules[rule].source, as: UTF8.self)
    sources[rule] = source
    evaluations.append(
      RuleEvaluation(
        program, rule, source, location: location, outcome: outcome, steps: values))
  }

  /// Notes the values that are complete: of expressions of which the last instruction is the one before `next`, unless
  /// a jump has left them out.
  mutating func record(executed: Int, next: Int, _ value: String) {
    let rule = program.rules[rule]
    var span = firstSpan(in: rule.spans, endingAt: next)
    while span < rule.spans.upperBound, program.spans[span].code.upperBound == next,
      stepCount < RuleTrace.stepCountMax
    {
      if program.spans[span].code.lowerBound <= executed {
        values.append(RuleEvaluation.Step(program, self.rule, span: span, value: value))
        stepCount += 1
      }
      span += 1
    }
  }

  /// Spans are in the order of their ends.
  private func firstSpan(in spans: Range<Int>, endingAt end: Int) -> Int {
    var (low, high) = (spans.lowerBound, spans.upperBound)
    while low < high {
      let middle = (low + high) / 2
      if program.spans[middle].code.upperBound < end { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension Evaluation {
  @inline(never)
  mutating func record(_ range: Range<Int>, executed: Int, next: Int) {
    guard stack.count > 0 else { return }
    let description = description(of: stack.top)
    recorder?.record(executed: executed, next: next, description)
  }

  /// A value as JSON, a snapshot as its location. Long ones are cut.
  private func description(of value: Value) -> String {
    let text: String
    switch value {
    case .null: text = "null"
    case .bool(let value): text = value ? "true" : "false"
    case .integer(let value): text = String(value)
    case .double(let value): text = Value.spelling(of: value)
    case .string(let value):
      text = value.string.cut(after: RuleEvaluation.Step.scalarCountMax).quoted
    case .snapshot(let place): text = Self.location(keys(Int(place)))
    case .json, .unusable: text = "an object"
    }
    return text.cut(after: RuleEvaluation.Step.scalarCountMax)
  }
}

extension String {
  /// The first scalars, and a mark if that is not all. Of scalars and not of characters: a stranger can make one
  /// character of a million scalars.
  func cut(after countMax: Int) -> String {
    guard
      let end = unicodeScalars.index(
        unicodeScalars.startIndex, offsetBy: countMax, limitedBy: unicodeScalars.endIndex),
      end < unicodeScalars.endIndex
    else { return self }
    return String(unicodeScalars[..<end]) + "…"
  }

  /// In quotation marks, on one line.
  var quoted: String {
    var text = "\""
    for scalar in unicodeScalars {
      switch scalar {
      case "\"", "\\": text += "\\\(scalar)"
      case "\n": text += "\\n"
      case "\t": text += "\\t"
      case "\r": text += "\\r"
      // Neither control characters nor those that change the direction of a line.
      case _ where scalar.properties.generalCategory == .control: text += "\u{FFFD}"
      case _ where scalar.properties.generalCategory == .format: text += "\u{FFFD}"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "\""
  }
}
