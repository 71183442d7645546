import Foundation

/// A measured figure: the median of its rounds, the minimum and the maximum.
struct Figure: Encodable, CustomStringConvertible {
  let workload: String
  let name: String
  let unit: String
  let median: Double
  let least: Double
  let most: Double
  let roundCount: Int

  init(_ workload: String, _ name: String, _ unit: String, _ values: [Double]) {
    precondition(!values.isEmpty, "a figure needs at least one round")
    let sorted = values.sorted()
    let middle = sorted.count / 2
    self.workload = workload
    self.name = name
    self.unit = unit
    median =
      sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    least = sorted[0]
    most = sorted[sorted.count - 1]
    roundCount = values.count
  }

  init(_ workload: String, _ name: String, _ unit: String, _ value: Double) {
    self.init(workload, name, unit, [value])
  }

  var description: String {
    let label = name.padding(toLength: max(36, name.count), withPad: " ", startingAt: 0)
    let value = Self.format(median)
    let padded = String(repeating: " ", count: max(0, 12 - value.count)) + value
    let range =
      roundCount > 1 ? "  (\(Self.format(least)) … \(Self.format(most)), \(roundCount) rounds)" : ""
    return "\(label)\(padded) \(unit)\(range)"
  }

  /// Formats a value with at least three significant digits and with separated thousands.
  private static func format(_ value: Double) -> String {
    let magnitude = abs(value)
    let digits = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 4
    let plain = String(format: "%.\(digits)f", value)
    guard digits == 0 else { return plain }
    var grouped = ""
    for (offset, digit) in plain.reversed().enumerated() {
      if offset > 0, offset.isMultiple(of: 3), digit != "-" { grouped.append(",") }
      grouped.append(digit)
    }
    return String(grouped.reversed())
  }
}
