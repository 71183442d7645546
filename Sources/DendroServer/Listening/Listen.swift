import DendroProtocol
import DendroTree
import Synchronization

/// One client's interest in a location, or in what a query shows of it.
final class Listen: Sendable {
  let path: Path
  /// Nil for the whole location.
  let query: QueryParameters?
  let receiver: any ListenReceiver
  /// Set when the listen is unregistered, which may be while another thread is about to register it.
  let isOver = Atomic<Bool>(false)
  /// How many of its values are being made, and whether another one has to follow. Used on the hub's queue only.
  nonisolated(unsafe) var unmadeCount = 0
  nonisolated(unsafe) var isStale = false
  /// Whether it begins when its order is made. Used on the hub's queue only.
  nonisolated(unsafe) var waitsForOrder = false
  /// So many children are looked at while others wait.
  static let costMax = 1_000

  init(_ path: Path, _ query: QueryParameters?, _ receiver: any ListenReceiver) {
    self.path = path
    self.query = query.flatMap { $0.showsAll ? nil : $0 }
    self.receiver = receiver
  }

  /// What the query shows of a node at the location.
  func shown(_ node: Node) -> Node { node.filtered(by: query) }

  /// Whether it takes long to make its value of a node.
  func isLong(_ node: Node) -> Bool {
    if unmadeCount > 0 { return true }
    if receiver.takesLong(toBegin: node) { return true }
    return query.map { node.filteringCost($0) > Self.costMax } ?? false
  }
}

/// Gets what a listen hears. Called on the hub's queue, in the order of the commits: it has to be quick, and
/// holds up the other listeners of the database meanwhile.
protocol ListenReceiver: AnyObject, Sendable {
  /// Whose listen it is: long work is done for each in turn.
  var client: AnyObject { get }
  /// Where the client is; nil if that is not known.
  var address: ClientAddress? { get }
  /// Whether `begin` takes longer than the other listeners may wait.
  func takesLong(toBegin node: Node) -> Bool
  /// The value comes later, on another thread. What is received from now on is newer.
  func prepare()
  /// The value that was prepared for does not come. On any thread.
  func giveUp()
  /// The value of the location, or what the query shows of it, at the beginning or after the receiver has asked
  /// for it again. On another thread if `prepare` was called before.
  func begin(_ node: Node, lsn: UInt64)
  /// What a commit has changed.
  func receive(_ update: ListenUpdate)
  /// No more comes.
  func end()
}

/// What one commit changes for all listens to a location, or to one query of it. Its texts are made once.
///
/// Used on the hub's queue only.
final class ListenUpdate {
  let change: PlaceChange
  let lsn: UInt64
  private var texts: [AnyHashable: AnswerText] = [:]

  init(_ change: PlaceChange, lsn: UInt64) {
    self.change = change
    self.lsn = lsn
  }

  /// The text that `make` makes for this form, which is made once.
  func text(_ form: some Hashable & Sendable, _ make: (PlaceChange) -> AnswerText) -> AnswerText {
    if let text = texts[AnyHashable(form)] { return text }
    let text = make(change)
    texts[AnyHashable(form)] = text
    return text
  }
}
