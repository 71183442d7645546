/// The figures of one turn of a contestant.
struct Measurement: Codable, Sendable {
  /// A figure besides the rate and the CPU time.
  struct Extra: Codable, Sendable {
    let name: String
    let unit: String
    let value: Double
  }

  /// How many times the work was done; 0 if only extras were measured.
  var count = 0
  var cost = Cost(seconds: 0, processorSeconds: 0)
  /// CPU time of a server that did a part of the work.
  var serverProcessorSeconds: Double?
  private(set) var extras: [Extra] = []

  /// Runs `body`, which blocks, and measures it.
  ///
  /// - Parameter peer: its server's CPU time is measured as well.
  static func blocking(
    _ count: Int, _ peer: (any Peer)? = nil, _ body: () throws -> Void
  ) throws -> Measurement {
    let server = try peer?.serverProcessorSeconds()
    let meter = Cost.Meter()
    try body()
    var measurement = Measurement(count: count, cost: meter.stop())
    if let server, let end = try peer?.serverProcessorSeconds() {
      measurement.serverProcessorSeconds = end - server
    }
    return measurement
  }

  /// Runs `body`, which awaits, and measures it.
  static func awaiting(_ count: Int, _ body: () async throws -> Void) async rethrows -> Measurement
  {
    let meter = Cost.Meter()
    try await body()
    return Measurement(count: count, cost: meter.stop())
  }

  mutating func add(_ name: String, _ unit: String, _ value: Double) {
    extras.append(Extra(name: name, unit: unit, value: value))
  }

  func adding(_ name: String, _ unit: String, _ value: Double) -> Measurement {
    var copy = self
    copy.add(name, unit, value)
    return copy
  }

  /// The rate of some work as an extra.
  mutating func addRate(_ name: String, _ unit: String, count: Int, _ body: () throws -> Void)
    rethrows
  {
    let meter = Cost.Meter()
    try body()
    add(name, unit, Double(count) / meter.stop().seconds)
  }

  /// How long single calls took, in seconds: their median and the 99th percentile.
  ///
  /// - Parameter calls: which ones, if there are several kinds: "of a read".
  mutating func addLatencies(_ latencies: [Double], _ calls: String = "") {
    guard !latencies.isEmpty else { return }
    let sorted = latencies.sorted()
    let suffix = calls.isEmpty ? "" : " " + calls
    add("p50" + suffix, "µs", sorted[sorted.count / 2] * 1e6)
    add("p99" + suffix, "µs", sorted[min(sorted.count - 1, sorted.count * 99 / 100)] * 1e6)
  }
}
