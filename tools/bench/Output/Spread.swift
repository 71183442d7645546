import Foundation

/// The median of the rounds, the minimum and the maximum.
struct Spread: Encodable, Sendable {
  let median: Double
  let least: Double
  let most: Double
  let roundCount: Int

  /// Nil if there is no value.
  init?(_ values: [Double]) {
    guard !values.isEmpty else { return nil }
    let sorted = values.sorted()
    let middle = sorted.count / 2
    median =
      sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    least = sorted[0]
    most = sorted[sorted.count - 1]
    roundCount = values.count
  }

  var text: String { Self.format(median) }

  /// The median, and the minimum and the maximum if there was more than one round.
  var textWithRange: String { text + range }

  /// The minimum and the maximum after a space; empty if there was one round.
  var range: String {
    roundCount > 1 ? " (\(Self.format(least)) … \(Self.format(most)))" : ""
  }

  /// Formats a value with at least three significant digits and with separated thousands.
  static func format(_ value: Double) -> String {
    let magnitude = abs(value)
    let digits = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 4
    let plain = String(format: "%.\(digits)f", value)
    return digits == 0 ? (Int(plain)?.separated ?? plain) : plain
  }
}

extension Int {
  /// With a comma before every three digits.
  var separated: String {
    var grouped = ""
    for (offset, digit) in String(self).reversed().enumerated() {
      if offset > 0, offset.isMultiple(of: 3), digit != "-" { grouped.append(",") }
      grouped.append(digit)
    }
    return String(grouped.reversed())
  }
}
