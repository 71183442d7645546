import DendroTree
import Synchronization

/// One listener: who wants what of where.
final class Registration: Sendable, Identifiable {
  let handle: DatabaseHandle
  /// Keeps the database open while somebody listens.
  let query: DatabaseQuery
  let type: DataEventType
  /// Whether it ends with its first event.
  let isSingle: Bool
  private let block: PlainClosure<(DataSnapshot, String?) -> Void>
  private let cancelBlock: PlainClosure<((any Error) -> Void)?>
  private let joined = Atomic<Bool>(false)
  private let removed = Atomic<Bool>(false)

  init(
    _ query: DatabaseQuery, _ type: DataEventType, isSingle: Bool,
    block: PlainClosure<(DataSnapshot, String?) -> Void>,
    cancel: PlainClosure<((any Error) -> Void)?>
  ) {
    handle = Self.nextHandle()
    self.query = query
    self.type = type
    self.isSingle = isSingle
    self.block = block
    cancelBlock = cancel
  }

  var id: DatabaseHandle { handle }

  /// The events that it waits for.
  var request: EventGenerator.Request { EventGenerator.Request(query.parameters, EventTypes(type)) }

  /// Whether it got its first events, or gets them now: before that it is told of no change.
  var hasJoined: Bool { joined.load(ordering: .relaxed) }

  /// In the drain only, where changes are told too.
  func join() { joined.store(true, ordering: .relaxed) }

  var isRemoved: Bool { removed.load(ordering: .acquiring) }

  /// - Returns: whether this call was the one that removed it.
  @discardableResult
  func remove() -> Bool { !removed.exchange(true, ordering: .acquiringAndReleasing) }

  /// Calls the block. On the callback queue only.
  func tell(_ snapshot: DataSnapshot, _ previousKey: String?) { block.call(snapshot, previousKey) }

  /// Calls the cancel block.
  ///
  /// - Returns: false where there is none.
  func cancel(_ error: DatabaseError) -> Bool {
    guard let cancel = cancelBlock.call else { return false }
    cancel(error)
    return true
  }

  private static let lastHandle = Atomic<UInt>(0)

  private static func nextHandle() -> DatabaseHandle {
    lastHandle.wrappingAdd(1, ordering: .relaxed).newValue
  }
}
