import Dendro
import DendroTree
import Synchronization

/// What the listeners of a query have seen: its value, and what the events of its children add up to.
final class QueryView: Sendable {
  /// The queries that there are to choose from.
  static let queryCount = 6

  private struct State {
    var children: [String: Node] = [:]
    var value = "nothing"
  }

  private let number: Int
  private let say: @Sendable (String) -> Void
  private let current = Mutex(State())

  /// - Parameter number: which query, below `queryCount`.
  /// - Parameter say: is given a line for each event that does not follow from those before it.
  init(_ number: Int, in database: Database, _ say: @escaping @Sendable (String) -> Void) {
    self.number = number
    self.say = say
    let query = Self.query(number, in: database)
    for type in DataEventType.allCases {
      query.observe(type) { [weak self] snapshot in self?.note(type, snapshot) }
    }
  }

  /// For messages.
  var name: String { "query \(number)" }

  /// What it has seen last, in words.
  var state: String { current.withLock { $0.value } }

  /// What it is to see of a database, in the same words.
  func state(in database: Database) async throws -> String {
    Self.text(try await Self.query(number, in: database).getData())
  }

  private static func query(_ number: Int, in database: Database) -> DatabaseQuery {
    let all = database.reference()
    let shared = all.child("shared")
    return switch number {
    case 0: shared
    case 1: shared.queryOrderedByKey().queryLimited(toLast: 3)
    case 2: shared.queryOrdered(byChild: "number").queryLimited(toFirst: 4)
    case 3: shared.queryOrdered(byChild: "extra").queryStarting(atValue: 100)
    case 4: shared.queryOrdered(byChild: "by").queryEqual(toValue: "c1")
    // None of the counts: what is kept of several listens is of several moments, until the server has answered.
    default: all.child("transactions").queryOrderedByValue().queryLimited(toLast: 1)
    }
  }

  private func note(_ type: DataEventType, _ snapshot: DataSnapshot) {
    current.withLock { state in
      let old = state.children[snapshot.key]
      let isExpected: Bool
      switch type {
      case .childAdded:
        isExpected = old == nil
        state.children[snapshot.key] = snapshot.node
      case .childChanged:
        isExpected = old != nil
        state.children[snapshot.key] = snapshot.node
      case .childMoved: isExpected = old != nil
      case .childRemoved:
        isExpected = old != nil
        state.children[snapshot.key] = nil
      case .value:
        let children = Dictionary(uniqueKeysWithValues: snapshot.map { ($0.key, $0.node) })
        isExpected = children == state.children
        state.value = Self.text(snapshot)
      }
      if !isExpected { say("wrong \(name): \(type) of \(snapshot.key) with \(snapshot)") }
    }
  }

  /// Its children in their order.
  private static func text(_ snapshot: DataSnapshot) -> String {
    snapshot.map { "\($0.key)=\(JSONWriter.string($0.node))" }.joined(separator: " ")
  }
}
