import DendroFuzzTargets
import Testing

/// G10, G20: every input that the fuzzer found worth keeping, and every one that once broke something.
@Suite("Inputs of the fuzzer")
struct CorpusTests {
  @Test(
    "every kept input ends in a value or an error, and keeps the promises",
    arguments: FuzzTarget.all.map(\.name))
  func corpus(name: String) throws {
    let target = try #require(FuzzTarget.named(name))
    let corpus = Corpus(of: target)
    let names = try corpus.names()
    #expect(names.count >= 3, "the inputs of \(name) are missing")
    for name in names {
      let problem = target.problem(with: try corpus.input(name), secondsMax: 60)
      #expect(problem == nil, "\(corpus.path)/\(name)")
    }
  }
}
