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

  init(_ path: Path, _ query: QueryParameters?, _ receiver: any ListenReceiver) {
    self.path = path
    self.query = query.flatMap { $0.showsAll ? nil : $0 }
    self.receiver = receiver
  }
}

/// Gets what a listen hears. Called on the hub's queue, in the order of the commits: it has to be quick, and
/// holds up the other listeners of the database meanwhile.
protocol ListenReceiver: AnyObject, Sendable {
  /// The value of the location, or what the query shows of it, at the beginning or after the receiver has asked
  /// for it again.
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
