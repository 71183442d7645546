import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

@testable import DendroServer

@Suite("serving: who has registered what")
struct PlaceNumbersTests {
  @Test("a location has the number that was given last to it or above it", arguments: 0..<20)
  func model(seed: UInt64) throws {
    var random = SeededRandomness(seed: seed)
    var numbers = PlaceNumbers()
    // The last ones win.
    var given: [(path: Path, number: Int)] = []
    func path() throws -> Path {
      try Path(
        keys: (0..<Int.random(in: 0...3, using: &random)).map { _ in
          try Key("k\(Int.random(in: 0..<3, using: &random))")
        })
    }
    for _ in 0..<200 {
      let place = try path()
      let number = Int.random(in: 0..<3, using: &random)
      numbers.set(place, to: number, ground: 0)
      given.append((place, number))
      for _ in 0..<10 {
        let place = try path()
        let expected = given.last { $0.path.isPrefix(of: place) }?.number ?? 0
        #expect(numbers[place] ?? 0 == expected, "seed \(seed), \(place)")
      }
    }
    numbers.set(.root, to: 0, ground: 0)
    #expect(numbers.isEmpty)
  }

  @Test("many places beside each other", .timeLimit(.minutes(5)))
  func many() throws {
    var numbers = PlaceNumbers()
    let above = try Key("a")
    for number in 0..<200_000 {
      numbers.set(Path(keys: [above, Key(number)]), to: 1, ground: 0)
    }
    #expect(numbers[Path(keys: [above, Key(199_999)])] == 1 && numbers[Path(keys: [above])] == nil)
    numbers.set(Path(keys: [above]), to: 0, ground: 0)
    #expect(numbers.isEmpty)
  }
}
