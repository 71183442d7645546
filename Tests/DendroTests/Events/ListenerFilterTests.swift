import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

@testable import Dendro

@Suite("Listener filter")
struct ListenerFilterTests {
  private static let paths = ["", "a", "a/b", "a/b/c", "ab", "b/a", "users/ada", "users/ben", "7"]
    .map(path)

  private static func path(_ text: String) -> Path {
    do {
      return try Path(parsing: text)
    } catch {
      preconditionFailure("\(error)")
    }
  }

  @Test("a path at, above or below a listener is never passed over")
  func concerned() {
    for listener in Self.paths {
      let filter = ListenerFilter()
      filter.add(listener)
      for path in Self.paths where Self.isRelated(path, listener) {
        let isConcerned = filter.mayConcern(path)
        #expect(isConcerned, "\(path), listener at \(listener)")
      }
    }
  }

  @Test("most other paths are passed over, and all are without listeners")
  func others() {
    let filter = ListenerFilter()
    let listened = Self.path("listened/below")
    let others = (0..<1_000).map { Self.path("list-\($0)/title") }
    func answers() -> (listened: Bool, root: Bool, others: Int) {
      (
        filter.mayConcern(listened), filter.mayConcern(.root),
        others.count { filter.mayConcern($0) }
      )
    }
    #expect(answers() == (false, false, 0))
    filter.add(Self.path("listened"))
    filter.add(listened)
    var found = answers()
    #expect(found.listened && found.root && found.others < 100)
    filter.remove()
    #expect(answers().listened)
    filter.remove()
    #expect(answers() == (false, false, 0))
    // The root concerns every listener, and its listeners every path.
    filter.add(.root)
    found = answers()
    #expect(found.listened && found.root && found.others == others.count)
    filter.removeAll()
    #expect(answers() == (false, false, 0))
  }

  private static func isRelated(_ a: Path, _ b: Path) -> Bool {
    let (short, long) = a.count < b.count ? (a, b) : (b, a)
    return Array(long.keys.prefix(short.count)) == Array(short.keys)
  }
}
