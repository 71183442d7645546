/// What one job of a sweep found, or several together.
package struct Tally: Sendable {
  /// A state or run that does not hold, and how to see it again.
  package struct Failure: Sendable, CustomStringConvertible {
    package var reproduction: Reproduction
    package var problem: String

    package var description: String { "\(reproduction): \(problem)" }
  }

  /// States judged.
  package var count = 0
  package var failures: [Failure] = []
  /// Counts beside the main one, by name.
  package var details: [String: Int] = [:]
  /// From the first job's begin to the last one's end; zero for a single job.
  package var duration = Duration.zero

  package init(count: Int = 0, details: [String: Int] = [:]) {
    self.count = count
    self.details = details
  }

  /// After so many failures a job need not go on.
  package var isHopeless: Bool { failures.count >= 3 }

  package mutating func fail(_ reproduction: Reproduction, _ problem: String) {
    failures.append(Failure(reproduction: reproduction, problem: problem))
  }

  package mutating func add(_ other: Tally) {
    count += other.count
    failures += other.failures
    details.merge(other.details, uniquingKeysWith: +)
  }

  /// `", 12,345 of this, 6 of that"`, in the order of the names; empty if there is nothing.
  package var detailText: String {
    details.sorted { $0.key < $1.key }.map { ", \(grouped($0.value)) \($0.key)" }.joined()
  }
}

/// The number with a comma before every three digits.
package func grouped(_ number: Int) -> String {
  var digits = Array(String(number).reversed())
  var place = 3
  while place < digits.count {
    digits.insert(",", at: place)
    place += 4
  }
  return String(digits.reversed())
}

extension Duration {
  package var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
