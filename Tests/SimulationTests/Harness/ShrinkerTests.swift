import DendroCrashHarness
import DendroTesting
import Testing

/// What makes a failure short and shows it again must itself be right, since it is needed only when
/// something else is wrong.
@Suite struct ShrinkerTests {
  /// Fails if the steps 3, 70 and 71 of a hundred are there, with a number that identifies the job.
  private let sweep = Sweep("test", stepCount: { _ in 100 }) { place in
    var tally = Tally(count: 1)
    let steps = place.kept(of: Array(0..<100))
    if [3, 70, 71].allSatisfy(steps.contains) { tally.fail(place, "job \(place.job)") }
    return tally
  }

  @Test func onlyWhatIsNeededIsLeft() async throws {
    let first = try #require(await sweep.run(5..<6).failures.first)
    let short = Shrinker().shrink(first, of: sweep)
    #expect(short.reproduction.kept == [3, 70, 71])
    #expect(short.problem == "job 5")
    #expect("\(short.reproduction)".hasSuffix("crashlab replay test 5 steps=3,70-71"))
  }

  @Test func itStopsAtItsBound() async throws {
    let first = try #require(await sweep.run(5..<6).failures.first)
    var shrinker = Shrinker()
    shrinker.attemptMax = 1
    #expect(shrinker.shrink(first, of: sweep).reproduction.kept?.count ?? 100 >= 50)
  }

  @Test(arguments: [
    "G1 7", "G1 7 steps=none", "G3 18446744073709551615 steps=0-3,7 12 k,d,t17+ 9 -",
    "G1 7 45 s512:5+,b",
  ])
  func wordsAreReadBack(text: String) throws {
    let words = text.split(separator: " ").map(String.init)
    let place = try #require(Reproduction(words: words))
    #expect(place.words == words)
  }

  @Test(arguments: [
    "", "G1", "G1 x", "G1 -1", "G1 1 2", "G1 1 2 q", "G1 1 steps=", "G1 1 steps=3-1",
    "G1 1 steps=0-99999999999", "G1 1 steps=1-2-3",
  ])
  func wrongWordsAreRefused(text: String) {
    let words = text.split(separator: " ").map(String.init)
    #expect(Reproduction(words: words) == nil)
  }

  /// A sweep ends at its last job, after a dozen failures at the latest.
  @Test func aSweepEnds() async {
    let good = Sweep("good") { _ in Tally(count: 10) }
    let tally = await good.run(until: Sweep.End(count: 95))
    #expect((95...130).contains(tally.count))
    let bad = Sweep("bad") { place in
      var tally = Tally(count: 1)
      tally.fail(place, "always")
      return tally
    }
    #expect(await bad.run().failures.count < 40)
    #expect(await good.run(until: Sweep.End(isInterrupted: { true })).count == 0)
  }
}
