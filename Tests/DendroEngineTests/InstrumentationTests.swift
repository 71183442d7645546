import DendroEngine
import DendroTesting
import DendroTree
import Dispatch
import Synchronization
import Testing

/// The closures for log events and metrics, without an engine.
@Suite("The queue of log events and metrics")
struct InstrumentationTests {
  private let goesOn = DispatchSemaphore(value: 0)
  private let lines = Received<String>()

  /// Its first call waits for `goesOn`.
  private func makeInstrumentation() -> Instrumentation {
    var options = EngineOptions()
    let isFirst = Received<Bool>()
    let wait: @Sendable () -> Void = { [goesOn] in
      if isFirst.all.isEmpty {
        isFirst.add(true)
        goesOn.wait()
      }
    }
    options.log = { [lines] event in
      wait()
      lines.add(event.message + (event.metadata["count"].map { " \($0)" } ?? ""))
    }
    options.metrics = { [lines] metric in
      wait()
      lines.add("\(metric.name) \(Int(metric.value))")
    }
    return Instrumentation(options)
  }

  /// Begins a call that lasts, and returns once it is the only one that was taken.
  private func begin(_ calls: Instrumentation) async {
    calls.record(LogEvent(.info, "first"))
    while calls.waitingCount > 0 { await Task.yield() }
  }

  private func end(_ calls: Instrumentation) async {
    goesOn.signal()
    while !calls.isIdle { await Task.yield() }
  }

  @Test("events and metrics come in their order, however late")
  func order() async {
    let calls = makeInstrumentation()
    await begin(calls)
    for number in 0..<500 {
      calls.record(LogEvent(.info, "line \(number)"))
      calls.record(Metric("figure", .counter, Double(number)))
    }
    await end(calls)
    let pairs: [[String]] = (0..<500).map { ["line \($0)", "figure \($0)"] }
    #expect(lines.all == ["first"] + pairs.joined())
  }

  @Test("metrics come some moments later, together, or with the next event")
  func delay() async {
    var options = EngineOptions()
    options.log = { [lines] in lines.add($0.message) }
    options.metrics = { [lines] in lines.add($0.name) }
    let calls = Instrumentation(options)
    for name in ["one", "two", "three"] { calls.record(Metric(name, .counter, 1)) }
    #expect(!calls.isIdle)
    while !calls.isIdle { await Task.yield() }
    #expect(lines.all == ["one", "two", "three"])
    calls.record(Metric("four", .counter, 1))
    calls.record(LogEvent(.info, "event"))
    calls.record(Metric("five", .counter, 1))
    while !calls.isIdle { await Task.yield() }
    #expect(lines.all.suffix(3) == ["four", "event", "five"])
  }

  @Test("past the limit lines and timers are left out and counted, sums and levels stay right")
  func bound() async {
    let calls = makeInstrumentation()
    await begin(calls)
    for number in 0..<Instrumentation.limit { calls.record(LogEvent(.info, "line \(number)")) }
    for number in 1...10_000 {
      calls.record(
        events: [LogEvent(.info, "lost")],
        metrics: [
          Metric("sum", .counter, 2), Metric("level", .gauge, Double(number)),
          Metric("time", .timer, 1),
        ])
    }
    #expect(calls.waitingCount == Instrumentation.limit + 2)
    await end(calls)
    let all = lines.all
    #expect(all.count == Instrumentation.limit + 4)
    #expect(
      all.dropFirst().prefix(Instrumentation.limit)
        == (0..<Instrumentation.limit).map { "line \($0)" }[...])
    #expect(all.suffix(3).prefix(2) == ["sum 20000", "level 10000"])
    #expect(all.last?.hasSuffix(" 20000") == true && all.last?.contains("left out") == true)
  }

  @Test("failures are counted whether anything gets the events or not, also those left out")
  func failures() async {
    let deaf = Instrumentation(EngineOptions())
    let slow = makeInstrumentation()
    await begin(slow)
    for calls in [deaf, slow] {
      for _ in 0..<Instrumentation.limit + 5 {
        calls.record(LogEvent(.warning, "full", failure: .diskFull))
      }
      calls.record(LogEvent(.info, "no failure"))
      #expect(calls.failureCounts == [.diskFull: UInt64(Instrumentation.limit + 5)])
    }
    goesOn.signal()
  }

  @Test("writes are counted, on a disk and in memory, awaited or not", arguments: [false, true])
  func counts(inMemory: Bool) async throws {
    let sum = Received<Double>()
    var options = EngineOptions()
    options.metrics = { if $0.name == "dendro.commit.writes" { sum.add($0.value) } }
    let engine =
      inMemory
      ? Engine.inMemory(options: options)
      : try Engine.open(
        at: "/db", options: options, environment: SimulatedDisk(seed: 1).environment)
    for number in 0..<100 { engine.submit(try set("a\(number)", .integer(1)), completion: nil) }
    while sum.all.reduce(0, +) < 100 { await Task.yield() }
    for number in 0..<100 { try await engine.write(set("b\(number)", .integer(1))) }
    try await engine.close()
    while sum.all.reduce(0, +) < 200 { await Task.yield() }
    #expect(sum.all.reduce(0, +) == 200)
  }

  @Test("an engine whose closure blocks continues")
  func standsStill() async throws {
    let first = DispatchSemaphore(value: 0)
    let sum = Received<Double>()
    var options = EngineOptions()
    options.metrics = { metric in
      guard metric.name == "dendro.commit.writes" else { return }
      if sum.all.isEmpty { first.wait() }
      sum.add(metric.value)
    }
    let engine = try Engine.open(
      at: "/db", options: options, environment: SimulatedDisk(seed: 1).environment)
    for number in 0..<2000 { try await engine.write(set("\(number)", .integer(1))) }
    #expect(sum.all.isEmpty)
    try await engine.close()
    first.signal()
    while sum.all.reduce(0, +) < 2000 { await Task.yield() }
    #expect(sum.all.reduce(0, +) == 2000)
  }
}
