import DendroCrashHarness
import Foundation
import Testing

/// G20: what once failed is run again each time.
@Suite("Past seeds")
struct PastSeedTests {
  static let lines: [String] = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Fixtures/PastSeeds.txt")
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
  }()

  @Test("there are some")
  func present() { #expect(!Self.lines.isEmpty) }

  @Test("it holds now", arguments: lines)
  func holds(line: String) throws {
    // The words of a reproduction, then two spaces and what it was.
    let words = line.split(separator: "  ", maxSplits: 1)[0].split(separator: " ").map(String.init)
    let place = try #require(Reproduction(words: words), "no sweep and job: \(line)")
    let sweep = try #require(try Sweeps.named(place.sweep), "no sweep of that name: \(line)")
    let tally = sweep.judge(place)
    #expect(tally.count > 0, "nothing was judged: \(line)")
    for failure in tally.failures { Issue.record("\(failure)") }
  }
}
