/// Figures in the text format of Prometheus.
struct PrometheusText {
  private(set) var text = ""

  /// One figure, or one for each of several labels.
  mutating func append(
    _ name: String, kind: String, help: String, values: [(labels: String, value: String)]
  ) {
    if values.isEmpty { return }
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
    for (labels, value) in values {
      text += labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
    }
  }

  mutating func gauge(_ name: String, _ help: String, _ value: some BinaryInteger) {
    append(name, kind: "gauge", help: help, values: [("", "\(value)")])
  }

  mutating func counter(_ name: String, _ help: String, _ value: some BinaryInteger) {
    append(name, kind: "counter", help: help, values: [("", "\(value)")])
  }

  mutating func histogram(_ name: String, _ help: String, _ histogram: Histogram) {
    let (cumulative, count, sum) = histogram.figures
    text += "# HELP \(name) \(help)\n# TYPE \(name) histogram\n"
    for (bound, count) in zip(Histogram.bounds, cumulative) {
      text += "\(name)_bucket{le=\"\(bound)\"} \(count)\n"
    }
    text += "\(name)_bucket{le=\"+Inf\"} \(count)\n\(name)_sum \(sum)\n\(name)_count \(count)\n"
  }
}
