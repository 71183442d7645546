import Testing

@testable import DendroTree

@Suite("Salvage: what two damaged checkpoints have both lost")
struct HoleTests {
  private static func hole(_ path: String, _ first: String?, _ end: String?, _ count: Int? = nil)
    throws -> PartialTree.Hole
  {
    PartialTree.Hole(
      path: try Path(parsing: path), first: try first.map { try Key($0) },
      end: try end.map { try Key($0) }, childCount: count)
  }

  @Test(
    "the intersection of holes is that of their paths and bounds",
    arguments: [
      ("/a, d to m", "/a, d to m", "/a, d to m"),
      ("/a, d to m", "/a, m to z", nil),
      ("/a, d to m", "/a, f to z", "/a, f to m"),
      ("/a, d to m", "/a, to f", "/a, d to f"),
      ("/a, d to", "/a, to f", "/a, d to f"),
      ("/a, to", "/a, d to m", "/a, d to m"),
      ("/a, to", "/b, to", nil),
      ("/a, d to m", "/a/e, x to y", "/a/e, x to y"),
      ("/a, d to m", "/a/z, x to y", nil),
      ("/, a to b", "/a/b/c, to", "/a/b/c, to"),
    ])
  func intersection(one: String, other: String, both: String?) throws {
    let (one, other) = (try parse(one), try parse(other))
    let expected = try both.map { try parse($0) }
    #expect(one.intersection(other) == expected)
    #expect(other.intersection(one) == expected)
  }

  private func parse(_ text: String) throws -> PartialTree.Hole {
    let parts = text.split(separator: ", ")
    let bounds = parts[1].split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    let first = bounds[0] == "to" ? nil : bounds[0]
    let end = bounds.last == "to" ? nil : bounds.last
    return try Self.hole(String(parts[0]), first, end)
  }

  @Test("children that one of them has are not counted")
  func counts() throws {
    let (one, other) = (try Self.hole("/a", "d", "m", 9), try Self.hole("/a", "d", nil, 20))
    #expect(one.intersection(other)?.childCount == 9)
    #expect(try one.intersection(Self.hole("/a", "e", nil, 20))?.childCount == nil)
    let description = try one.intersection(Self.hole("/a", "e", nil, 20))?.description
    #expect(description == "children of /a, from 'e' to before 'm'")
  }
}
