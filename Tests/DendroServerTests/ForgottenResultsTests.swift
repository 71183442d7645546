import DendroTestSupport
import DendroTree
import Testing

@testable import DendroServer

/// Which results of numbered writes are given back, and what is said of that.
@Suite("serving: results that are given back")
struct ForgottenResultsTests {
  private static let day = ForgottenResults.day
  /// 2026, in milliseconds since 1970.
  private static let now: Int64 = 1_790_000_000_000

  /// The results of openings: of whom, which opening, heard so many days ago, from where, how many results.
  private func results(
    _ openings: [(owner: String, opening: Int, days: Int64, from: String, count: Int)]
  ) throws -> Node {
    var all = Node.empty
    for item in openings {
      let path = try Path(parsing: "\(item.owner)/\(opening(item.opening))")
      all.graft(
        Node(.integer(Self.now - item.days * Self.day)),
        at: path.appending(ForgottenResults.heard))
      if !item.from.isEmpty {
        all.graft(Node(.string(item.from)), at: path.appending(ForgottenResults.from))
      }
      for number in 1...item.count {
        all.graft(Node(.string("ok 0123456789abcdef")), at: path.appending(Key(number)))
      }
    }
    return all
  }

  private func opening(_ number: Int) -> String { "i\(number)" }

  private func given(_ results: Node, _ byteCountMax: Int = 64 << 20) -> (
    paths: Set<String>, forgotten: ForgottenResults
  ) {
    let forgotten = ForgottenResults(results, now: Self.now, byteCountMax: byteCountMax)
    return (Set(forgotten.paths.map(\.description)), forgotten)
  }

  @Test("an opening of a client that was not heard for 30 days goes; the client's others stay")
  func old() throws {
    let kept = try results([
      ("user ann/c1", 1, 31, "", 2), ("user ann/c1", 2, 30, "", 1), ("user bob/c2", 1, 0, "", 1),
      ("user bob/c3", 1, 40, "", 1), ("user bob/c3", 2, 50, "", 1),
    ])
    let (paths, forgotten) = given(kept)
    #expect(paths == ["/user ann/c1/i1", "/user bob/c3"])
    // What was heard on the last day of those that are gone may be gone as well.
    #expect(forgotten.since == Self.now - 30 * Self.day)
    #expect(forgotten.strangersSince == 0)
    #expect(forgotten.openingCount == 5)
  }

  @Test("a hundred openings of one client stay as long as they are young and small")
  func many() throws {
    let kept = try results((1...100).map { ("user ann/c1", $0, Int64($0 % 29), "", 1) })
    let (paths, forgotten) = given(kept)
    #expect(paths.isEmpty && forgotten.since == 0)
  }

  @Test("results of an earlier version, which has noted the time of the client alone")
  func earlierVersion() throws {
    var kept = Node.empty
    for (client, days) in [("c1", 31), ("c2", 1)] as [(String, Int64)] {
      let path = try Path(parsing: "user ann/\(client)")
      kept.graft(
        Node(.integer(Self.now - days * Self.day)), at: path.appending(ForgottenResults.heard))
      kept.graft(Node(.string("ok 0")), at: try Path(parsing: "user ann/\(client)/i1/1"))
    }
    #expect(given(kept).paths == ["/user ann/c1"])
  }

  @Test("if they are too large, those of users that were not heard for longest go first")
  func large() throws {
    let kept = try results((1...20).map { ("user u\($0)/c", 1, Int64($0), "", 100) })
    let (paths, forgotten) = given(kept, 40_000)
    #expect(paths == ["/user u17/c", "/user u18/c", "/user u19/c", "/user u20/c"])
    #expect(forgotten.since == Self.now - 16 * Self.day)
  }

  @Test(
    "strangers who make many take the place of strangers from the same address, and of no user")
  func strangers() throws {
    var openings = (1...200).map { ("anonymous/flood\($0)", 1, Int64(0), "x", 10) }
    openings += (1...20).map { ("anonymous/guest\($0)", 1, Int64(20), "a\($0)", 10) }
    openings += (1...20).map { ("user u\($0)/c", 1, Int64(20), "", 10) }
    let (paths, forgotten) = given(try results(openings), 80_000)
    #expect(paths.count > 30 && paths.allSatisfy { $0.hasPrefix("/anonymous/flood") })
    #expect(forgotten.since == 0)
    #expect(forgotten.strangersSince == Self.now)
  }

  @Test("from each address the largest part goes until a fifth is gone", arguments: 1...50)
  func shares(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var openings: [(String, Int, Int64, String, Int)] = []
    for client in 0..<40 {
      let from = "a\(generator.below(5))"
      openings.append(
        ("anonymous/c\(client)", 1, Int64(generator.below(30)), from, 1 + generator.below(20)))
    }
    let kept = try results(openings)
    let (paths, _) = given(kept, 4)
    var rest: [String: Int] = [:]
    var gone: [String: Int] = [:]
    for (client, _, _, from, count) in openings {
      // Two members beside the results.
      if paths.contains("/\(client)") {
        gone[from, default: 0] += count + 2
      } else {
        rest[from, default: 0] += count + 2
      }
    }
    let total = openings.reduce(0) { $0 + $1.4 + 2 }
    #expect(gone.values.reduce(0, +) * 5 >= total, "seed \(seed)")
    // One opening more or less: none that gave something back had less than one that keeps it all, but for its last opening.
    let largest = rest.values.max() ?? 0
    for (from, count) in gone {
      #expect(rest[from, default: 0] + 22 >= min(largest, count), "seed \(seed)")
    }
  }
}
