import Testing

@testable import DendroTree

/// Which writes say by themselves what is there afterwards: who has judged one of the others has judged it for one state.
@Suite("Writes that depend on what is there")
struct StateDependenceTests {
  private static let place = Path.root.appending(key("a"))
  private static let below = Path.root.appending(key("b"))
  private static let one = Node(.integer(1))

  private static func key(_ name: String) -> Key {
    guard let key = try? Key(name) else { preconditionFailure("\(name) is a key") }
    return key
  }

  private static func update(_ actions: Write.Entry.Action...) -> Write {
    let entries = actions.enumerated().map { number, action in
      Write.Entry(path: Path.root.appending(key("k\(number)")), action: action)
    }
    return .update(place, entries)
  }

  private static let tree: Node = {
    var node = Node.empty
    node.graft(one, at: below)
    node.graft(one, at: Path.root.appending(key("c")))
    return node
  }()

  @Test(
    "writes without increments do not",
    arguments: [
      .set(place, one), .set(place, .empty), .set(.root, tree), .remove(place),
      .setPriority(place, .integer(1)), .setPriority(place, nil), update(),
      update(.set(one), .remove, .setPriority(.string("p")), .set(tree)),
    ] as [Write])
  func plain(write: Write) {
    #expect(!EncodedWrite(write).withView { $0.dependsOnState }, "\(write)")
  }

  @Test(
    "increments do, wherever they stand",
    arguments: [
      .increment(place, .integer(1)), .increment(.root, .double(0.5)),
      update(.increment(.integer(1))),
      update(.set(tree), .remove, .setPriority(nil), .increment(.integer(-1)), .set(one)),
    ] as [Write])
  func increments(write: Write) {
    #expect(EncodedWrite(write).withView { $0.dependsOnState }, "\(write)")
  }

  @Test("server values within a value do", arguments: [true, false])
  func serverValues(isTimestamp: Bool) {
    let value: Draft.Deferred.Value = isTimestamp ? .timestamp : .increment(.integer(1))
    let draft = Draft(
      .set(Self.place, Self.tree), deferred: [Draft.Deferred(path: Self.below, value: value)])
    #expect(EncodedWrite(draft).withView { $0.dependsOnState })
  }
}
