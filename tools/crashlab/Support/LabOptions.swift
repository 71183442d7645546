import Foundation

/// The options of every command: the amount of work, the seed, and the format of the report.
struct LabOptions: Sendable {
  static let named: Set<String> = ["--seed", "--count", "--minutes"]
  static let flags: Set<String> = ["--json", "--soak"]

  /// What all random choices start from.
  var seed: UInt64
  /// Whether the seed was given, or drawn.
  var isSeeded: Bool
  /// How many are judged; nil for what the goal asks.
  var count: Int?
  var minutes: Double?
  /// The goals of a release, not those of a submission.
  var isSoak: Bool
  var isJSON: Bool

  init(_ options: inout Options) {
    isSeeded = options["--seed"] != nil
    // Small enough to be read out; the jobs of a run are numbered from here.
    seed = options.number(
      "--seed", in: 0...UInt64.max >> 1, default: UInt64.random(in: 0..<1 << 40))
    count = nil
    if options["--count"] != nil {
      count = options.number("--count", in: 1...1_000_000_000_000, default: 1)
    }
    minutes = nil
    if let text = options["--minutes"] {
      if let value = Double(text), value > 0, value <= 100_000 {
        minutes = value
      } else {
        options.fail("--minutes wants a number above 0, up to 100000")
      }
    }
    isSoak = options.has("--soak")
    isJSON = options.has("--json")
  }

  func wanted(_ goal: Goal) -> Int { isSoak ? goal.soak : goal.submission }

  /// Standard output is the result's alone if a program reads it.
  func say(_ line: String) {
    if isJSON { return note(line) }
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }

  func note(_ line: String) {
    FileHandle.standardError.write(Data((line + "\n").utf8))
  }
}

/// The options of one command line: `--name value` and `--flag`.
struct Options {
  private var values: [String: String] = [:]
  private var flags: Set<String> = []
  private(set) var problem: String?

  init(_ arguments: [String], named: Set<String>, flags known: Set<String> = []) {
    var rest = arguments[...]
    while let name = rest.popFirst() {
      if known.contains(name) {
        flags.insert(name)
      } else if named.contains(name), let value = rest.popFirst() {
        values[name] = value
      } else {
        problem =
          named.contains(name) ? "\(name) wants a value" : "there is no option «\(name)» here"
        return
      }
    }
  }

  subscript(name: String) -> String? { values[name] }
  func has(_ flag: String) -> Bool { flags.contains(flag) }

  mutating func fail(_ text: String) { problem = problem ?? text }

  /// The value as a number of the range; the default if it is not given.
  mutating func number<N: FixedWidthInteger>(
    _ name: String, in range: ClosedRange<N>, default fallback: N
  ) -> N {
    guard let text = values[name] else { return fallback }
    guard let number = N(text), range.contains(number) else {
      fail("\(name) wants a number from \(range.lowerBound) to \(range.upperBound)")
      return fallback
    }
    return number
  }
}
