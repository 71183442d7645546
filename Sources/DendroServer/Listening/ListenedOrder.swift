import Dendro
import DendroProtocol
import DendroTree

/// The listens of one location to queries in one order of its children.
///
/// An order takes memory for each child. So only some orders of a location are kept; in the others, what a listen shows is looked
/// for anew after each commit, when it is its client's turn.
///
/// Unchecked: used on the hub's queue only.
final class ListenedOrder: @unchecked Sendable {
  let path: Path
  let order: SortOrder
  let isKept: Bool
  /// As of the last commit, which has `lsn`.
  private(set) var node: Node
  private(set) var lsn: UInt64
  private var windows: [QueryParameters: [ObjectIdentifier: Listen]] = [:]
  private var generator = EventGenerator()
  /// The state that the generator is at.
  private var generated: Node
  /// Listens that begin once the order is made; nil if it is.
  private var waiting: [ObjectIdentifier: Listen]?

  init(_ path: Path, _ order: SortOrder, _ node: Node, lsn: UInt64, isKept: Bool) {
    self.path = path
    self.isKept = isKept
    self.order = order
    self.node = node
    self.lsn = lsn
    generated = node
    if isKept, order != .key, node.childCount > Listen.costMax { waiting = [:] }
  }

  var isUnused: Bool { windows.isEmpty && waiting?.isEmpty ?? true }

  var listens: [Listen] { windows.values.flatMap(\.values) + (waiting ?? [:]).values }

  // MARK: Listens

  /// - Returns: whether it begins now; otherwise it is one of those that `take` returns.
  func add(_ listen: Listen, _ query: QueryParameters) -> Bool {
    guard waiting == nil else {
      waiting?[ObjectIdentifier(listen)] = listen
      return false
    }
    windows[query, default: [:]][ObjectIdentifier(listen)] = listen
    if isKept { generator.keep(query, of: node) }
    return true
  }

  /// - Returns: whether it was there.
  func remove(_ listen: Listen, _ query: QueryParameters) -> Bool {
    if waiting?.removeValue(forKey: ObjectIdentifier(listen)) != nil { return true }
    guard windows[query]?.removeValue(forKey: ObjectIdentifier(listen)) != nil else { return false }
    if windows[query]?.isEmpty == true {
      windows[query] = nil
      generator.discard(EventGenerator.Unneeded(windows: [query]))
    }
    return true
  }

  /// Takes the order, which was made on another thread from a state of before.
  ///
  /// - Returns: the listens that begin now, with the present state.
  func take(_ generator: EventGenerator, madeFrom old: Node) -> [Listen] {
    guard let listens = waiting?.values else { return [] }
    waiting = nil
    self.generator = generator
    generated = old
    _ = advanceGenerator()
    for listen in listens { listen.query.map { _ = add(listen, $0) } }
    return Array(listens)
  }

  // MARK: Commits

  /// Passes on what changes in the windows.
  ///
  /// - Returns: the listens whose values have to be made anew.
  func advance(to new: Node, lsn: UInt64) -> [Listen] {
    let isSame = new.isIdentical(to: node)
    node = new
    self.lsn = lsn
    if waiting != nil || isSame { return [] }
    guard isKept else { return windows.values.flatMap(\.values) }
    for (query, children) in advanceGenerator() {
      let parts = children.sorted { $0.key < $1.key }.map { (Path(keys: [$0.key]), $0.value) }
      guard let change = PlaceChange(parts) else { continue }
      let update = ListenUpdate(change, lsn: lsn)
      for listen in windows[query, default: [:]].values { listen.receiver.receive(update) }
    }
    return []
  }

  private func advanceGenerator() -> [(parameters: QueryParameters, children: [Key: Node])] {
    defer { generated = node }
    return generator.windowChanges(from: generated, to: node)
  }
}
