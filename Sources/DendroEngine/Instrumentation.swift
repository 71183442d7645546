import Dispatch
import Synchronization

/// Calls the options' closures for log events and metrics: on a queue of their own, one at a time, in the
/// order of the events.
///
/// The engine does not wait for them, so that they may call it and wait for it. Metrics that come without an event are called
/// together, some milliseconds later: a busy engine has thousands in a second, and would wake a thread for each batch. If
/// a closure is behind by `limit` calls, further metrics are merged and further events left out, and counted.
package final class Instrumentation: Sendable {
  /// The most calls that wait.
  package static let limit = 1024
  /// How long metrics wait for others, unless half as many wait as may.
  private static let delay = DispatchTimeInterval.milliseconds(10)

  private let log: (@Sendable (LogEvent) -> Void)?
  private let metrics: (@Sendable (Metric) -> Void)?
  private let queue = DispatchQueue(
    label: "dendro.instrumentation", autoreleaseFrequency: .workItem)
  private let state = Mutex(State())

  fileprivate enum Call {
    case event(LogEvent)
    case metric(Metric)
  }

  fileprivate struct State {
    var waiting: [Call] = []
    var leftOutCount = 0
    var failureCounts: [FailureKind: UInt64] = [:]
    var phase = Phase.idle
  }

  fileprivate enum Phase {
    /// Nothing waits.
    case idle
    /// Calls will be made in a moment.
    case delayed
    /// Calls are being made, or are about to be.
    case calling
  }

  package init(_ options: EngineOptions) {
    log = options.log
    metrics = options.metrics
  }

  /// Whether metrics are called for.
  var wantsMetrics: Bool { metrics != nil }

  package func record(_ event: LogEvent) { record(events: [event], metrics: []) }

  package func record(_ metric: Metric) { record(events: [], metrics: [metric]) }

  /// Returns at once.
  package func record(events: [LogEvent], metrics figures: [Metric]) {
    let next = state.withLock { state -> Phase? in
      for case let kind? in events.map(\.failure) { state.failureCounts[kind, default: 0] += 1 }
      if log != nil { for event in events { state.add(event) } }
      if metrics != nil { for figure in figures { state.add(figure) } }
      guard state.phase != .calling, !state.waiting.isEmpty else { return nil }
      let isUrgent = !events.isEmpty || state.waiting.count >= Self.limit / 2
      let next = isUrgent ? Phase.calling : .delayed
      guard next != state.phase else { return nil }
      state.phase = next
      return next
    }
    guard let next else { return }
    switch next {
    case .calling: queue.async { self.callAll() }
    case .delayed: queue.asyncAfter(deadline: .now() + Self.delay) { self.callDelayed() }
    case .idle: break
    }
  }

  /// How many events were failures of each kind, also if nothing gets events.
  package var failureCounts: [FailureKind: UInt64] { state.withLock { $0.failureCounts } }

  /// Calls that wait, without those that are being made.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Whether nothing waits and no call is being made.
  package var isIdle: Bool { state.withLock { $0.phase == .idle } }

  private func callDelayed() {
    let isDue = state.withLock { state in
      // An event may have come, with which all was called.
      guard state.phase == .delayed else { return false }
      state.phase = .calling
      return true
    }
    if isDue { callAll() }
  }

  private func callAll() {
    while true {
      let (calls, leftOutCount) = state.withLock { state in
        defer {
          state.waiting = []
          state.leftOutCount = 0
        }
        if state.waiting.isEmpty { state.phase = .idle }
        return (state.waiting, state.leftOutCount)
      }
      if calls.isEmpty { return }
      for call in calls {
        switch call {
        case .event(let event): log?(event)
        case .metric(let metric): metrics?(metric)
        }
      }
      if leftOutCount > 0 {
        log?(
          LogEvent(
            .warning, "events and timers were left out, since the closures for them are too slow",
            ["count": String(leftOutCount)]))
      }
    }
  }
}

extension Instrumentation.State {
  fileprivate mutating func add(_ event: LogEvent) {
    if waiting.count < Instrumentation.limit {
      waiting.append(.event(event))
    } else {
      leftOutCount += 1
    }
  }

  /// Above the limit a counter is added to the one that waits already, and a gauge replaces it: sums and
  /// levels stay right, and there are few names.
  fileprivate mutating func add(_ metric: Metric) {
    if waiting.count < Instrumentation.limit { return waiting.append(.metric(metric)) }
    if metric.kind == .timer {
      leftOutCount += 1
      return
    }
    for index in waiting.indices.reversed() {
      guard case .metric(var earlier) = waiting[index], earlier.name == metric.name,
        earlier.kind == metric.kind
      else { continue }
      let isSum = metric.kind == .counter
      earlier.value = isSum ? earlier.value + metric.value : metric.value
      waiting[index] = .metric(earlier)
      return
    }
    waiting.append(.metric(metric))
  }
}
