import DendroTesting
import DendroTree

/// G18: a few threads that read, write, transact and listen at the same places at the same time. Their
/// calls must have happened one after the other, in the order of the log: each write between its call
/// and its return, each read in a state between its call and its answer, each transaction on the very
/// state before it; and every listener gets one state after the other without a gap.
package enum Histories {
  package static let sweep = Sweep(
    "G18", unit: "histories", trialCount: 5000, stepCount: { steps($0).count }, judge: judge)

  /// One thing that one of the threads does; its number, from 1 on, is what it writes.
  struct Step: Sendable {
    var client: Int
    var work: Work
  }

  enum Work: Sendable {
    case call(ObservedHistory.Action)
    case listen(ObservedHistory.Place, ObservedHistory.Listener.Kind)
    /// The one of its own that listens longest.
    case removeListener
    /// Until all that it asked for so far was answered.
    case wait
    /// For so many microseconds; 0 only gives up its turn.
    case pause(UInt32)
  }

  /// Fewer writes than a listener may fall behind before it gets differences instead of states.
  private static let stepMax = 48

  private static func steps(_ seed: UInt64) -> [Step] {
    let random = SeededRandomness(seed: seed)
    func draw(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    let clientCount = 2 + draw(3)
    // Some histories have a favourite, so that much happens at one place.
    let favourite = draw(2) == 0 ? ObservedHistory.Place.allCases[draw(5)] : nil
    func place() -> ObservedHistory.Place {
      if let favourite, draw(2) == 0 { return favourite }
      return ObservedHistory.Place.allCases[draw(ObservedHistory.Place.allCases.count)]
    }
    func register() -> ObservedHistory.Place { draw(2) == 0 ? .a : .b }
    func work() -> Work {
      switch draw(100) {
      case 0..<22: .call(.set(register()))
      case 22..<32: .call(.update(draw(2) == 0 ? [.a, .b] : [register()]))
      case 32..<38: .call(.clear(draw(3) == 0 ? .pair : register()))
      case 38..<48: .call(.add)
      case 48..<62: .call(.transact([.a, .b, .bank, .bank, .pair][draw(5)]))
      case 62..<64: .call(.abort(place()))
      case 64..<74: .call(.read(place()))
      case 74..<80: .call(.observe(place()))
      case 80..<87: .listen(place(), draw(3) == 0 ? .children : .value)
      case 87..<90: .removeListener
      case 90..<95: .wait
      default: .pause(draw(2) == 0 ? 0 : UInt32(draw(60)))
      }
    }
    return (0..<8 + draw(stepMax - 8)).map { _ in Step(client: draw(clientCount), work: work()) }
  }

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally(count: 1)
    // Numbered before any is left out: what a step writes stays what it was.
    let steps = place.kept(of: Array(steps(place.job).enumerated()))
    let run = HistoryRun(
      seed: place.job, steps: steps.map { (number: $0.offset + 1, step: $0.element) })
    switch run.observed() {
    case .failure(let problem): tally.fail(place, problem.description)
    case .success(let history):
      for problem in HistoryJudge(history).problems.prefix(3) { tally.fail(place, problem) }
      if place.isExplained, !tally.failures.isEmpty {
        for (number, step) in steps { print("\(number + 1). thread \(step.client): \(step.work)") }
        for call in history.calls { print(call) }
        for listener in history.listeners { print(listener) }
      }
      tally.details = [
        "writes": history.log.count,
        "reads": history.calls.count { $0.action.isRead },
        "transactions": history.calls.count { $0.action.isTransaction },
        "listeners": history.listeners.count,
        "events": history.listeners.reduce(0) { $0 + $1.events.count },
      ]
    }
    return tally
  }
}
