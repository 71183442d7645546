import Dendro
import DendroTestSupport
import Foundation
import Testing

#if os(Linux)
  /// How often calls of the hot paths allocate memory: counts, which are the same on every machine.
  @Suite("What calls allocate")
  struct AllocationTests {
    /// The allocations of a call: the median of 500, since now and then an array or a page grows.
    private static func median(_ call: (Int) -> Void) -> Int {
      var counts: [Int] = []
      for number in 0..<600 {
        let count = AllocationCount.during { call(number) }
        if number >= 100 { counts.append(count) }
      }
      return counts.sorted()[250]
    }

    /// Expects at most so many allocations. Without optimization some closures are allocated as well.
    private static func expect(
      _ most: Int, inDebugBuilds mostInDebug: Int, _ sentence: String,
      _ call: (DatabaseReference, Int) -> Void
    ) async throws {
      try #require(AllocationCount.begin())
      let path = NSTemporaryDirectory() + "/dendro-\(UUID().uuidString)"
      defer { try? FileManager.default.removeItem(atPath: path) }
      let database = try await Database.open(at: path)
      let root = database.reference()
      plainly {
        for number in 0..<600 { root.child("list/key\(number)/n").setValue(-1) }
        let count = median { call(root, $0) }
        #if DEBUG
          let most = mostInDebug
        #endif
        #expect(count <= most, "\(sentence): \(count) allocations")
      }
      try await database.close()
    }

    @Test("the set of a leaf by a reference that is kept: none")
    func heldSet() async {
      await #expect(processExitsWith: .success) {
        let kept = Kept()
        try await Self.expect(0, inDebugBuilds: 1, "a string") { root, number in
          kept.reference(root).setValue(number % 2 == 0 ? "even" : "odd")
        }
        try await Self.expect(0, inDebugBuilds: 1, "an integer") { root, number in
          kept.reference(root).setValue(number)
        }
      }
    }

    @Test("an increment by a reference that is kept: none")
    func heldIncrement() async {
      await #expect(processExitsWith: .success) {
        let kept = Kept()
        try await Self.expect(0, inDebugBuilds: 1, "an increment") { root, _ in
          kept.reference(root).increment(by: 1)
        }
      }
    }

    @Test("the set of a leaf by its path: no more than the path and the reference take")
    func pathSet() async {
      await #expect(processExitsWith: .success) {
        let paths = (0..<600).map { "list/key\($0)/n" }
        try await Self.expect(3, inDebugBuilds: 4, "child and setValue") { root, number in
          root.child(paths[number]).setValue(number)
        }
      }
    }

    @Test("reading leaves in a view: none")
    func view() async {
      await #expect(processExitsWith: .success) {
        let paths = (0..<600).map { "list/key\($0)/n" }
        try await Self.expect(0, inDebugBuilds: 0, "a leaf in a view") { root, number in
          try? root.database.read { view in
            for index in 0..<5 { _ = try view.int(at: paths[(number + index) % 600]) }
          }
        }
      }
    }

    @Test("an update of leaves: what collects them, and nothing for each")
    func update() async {
      await #expect(processExitsWith: .success) {
        let paths = (0..<600).map { "list/key\($0)/n" }
        for leafCount in [10, 20] {
          try await Self.expect(
            20, inDebugBuilds: 20 + 4 * leafCount, "an update of \(leafCount)"
          ) { root, number in
            root.update { update in
              for index in 0..<leafCount { update.set(paths[(number + index) % 600], number) }
            }
          }
        }
      }
    }
  }

  /// A reference to one leaf, made once for each database.
  private final class Kept {
    private var last: (root: DatabaseReference, leaf: DatabaseReference)?

    func reference(_ root: DatabaseReference) -> DatabaseReference {
      if let last, last.root === root { return last.leaf }
      let leaf = root.child("list/key7/n")
      last = (root, leaf)
      return leaf
    }
  }
#endif
