import DendroTree

/// The transactions of a client that have not ended, in the order in which they were started.
///
/// Those at one location, above and below are a group: their blocks run one after the other, each on what those before it
/// have made, and the server gets what all of them have made as one write.
struct SyncTransactions: Sendable {
  struct Item: Sendable {
    let path: Path
    /// Whether listeners see what it has made before the server has taken it.
    let isVisible: Bool
    var phase = Phase.waiting
    /// What its block got last.
    var input = Node.empty
    /// What its block has made of that.
    var output = SyncValue(.empty)
    /// The number of the pending write with the output; nil if there is none.
    var write: Int?
    /// How often its output was sent.
    var sentCount = 0
    /// How often its block has run since then, since something else was known when it had decided.
    var rerunCount = 0
  }

  /// What transactions have made together, on its way to the server.
  struct Attempt: Sendable {
    let ids: [Int]
    /// The number of their last write, by which it has its place among the writes.
    let order: Int
    let user: SyncUser
    /// The put, with the number by which a server makes it once if it has one.
    let message: SyncDialogue.Message
    let isNumbered: Bool
  }

  enum Phase: Sendable {
    /// Its block is to run once those of the transactions before it have run.
    case waiting
    case running
    /// Its output is to be sent once all of the group are decided.
    case decided
    case sent
    /// A later write of the client has come. If the server does not take the output, the transaction has ended.
    case overwritten
  }

  /// How often an output is sent at most, and a block run again before it is.
  static let attemptCountMax = 25

  private(set) var items: [Int: Item] = [:]
  /// By their numbers, which no write has.
  var attempts: [Int: Attempt] = [:]
  private var places = Places()

  subscript(id: Int) -> Item? {
    get { items[id] }
    set {
      guard let newValue else {
        if let old = items.removeValue(forKey: id) { places.remove(id, at: old.path) }
        return
      }
      if items[id] == nil { places.add(id, at: newValue.path) }
      items[id] = newValue
    }
  }

  /// The groups at a location: the one above it or there, or else those below it.
  ///
  /// - Returns: the location of each, and its transactions in their order.
  func groups(at path: Path) -> [(path: Path, ids: [Int])] { places.groups(at: path) }

  /// The transactions at a location, above it and below.
  func related(to path: Path) -> [Int] { places.related(to: path).sorted() }

  /// The transactions at locations.
  private struct Places: Sendable {
    private var ids: [Int] = []
    private var children: [Key: Places] = [:]

    private var isEmpty: Bool { ids.isEmpty && children.isEmpty }

    mutating func add(_ id: Int, at path: Path) {
      guard let key = path.first else { return ids.append(id) }
      children[key, default: Places()].add(id, at: path.dropFirst(1))
    }

    mutating func remove(_ id: Int, at path: Path) {
      guard let key = path.first else { return ids.removeAll { $0 == id } }
      children[key]?.remove(id, at: path.dropFirst(1))
      if children[key]?.isEmpty == true { children[key] = nil }
    }

    private var all: [Int] { ids + children.values.flatMap(\.all) }

    func related(to path: Path) -> [Int] {
      guard let key = path.first else { return all }
      return ids + (children[key]?.related(to: path.dropFirst(1)) ?? [])
    }

    func groups(at path: Path, below above: Path = .root) -> [(path: Path, ids: [Int])] {
      if !ids.isEmpty { return [(above, all.sorted())] }
      if let key = path.first {
        return children[key]?.groups(at: path.dropFirst(1), below: above.appending(key)) ?? []
      }
      return children.sorted { $0.key < $1.key }
        .flatMap { $0.value.groups(at: .root, below: above.appending($0.key)) }
    }
  }
}
