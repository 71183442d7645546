import DendroTree
import Synchronization

/// One listener: a query, a kind of events, and the block to call. A drain calls the blocks; any thread may
/// remove it.
final class Registration: Sendable, Identifiable {
  let handle: DatabaseHandle
  /// It keeps the database open while the listener is registered.
  let query: DatabaseQuery
  let type: DataEventType
  /// Whether the listener is removed at its first event.
  let isSingle: Bool
  private let block: Callback<EventFunction>
  private let cancelBlock: Callback<CancelFunction>?
  private let active = Atomic<Bool>(false)
  private let removed = Atomic<Bool>(false)

  init(
    _ query: DatabaseQuery, _ type: DataEventType, isSingle: Bool,
    block: Callback<EventFunction>, cancel: Callback<CancelFunction>?
  ) {
    handle = Self.nextHandle()
    self.query = query
    self.type = type
    self.isSingle = isSingle
    self.block = block
    hasIsolation = block.isolation != nil
    cancelBlock = cancel
  }

  var id: DatabaseHandle { handle }

  /// Whether its only event is read from the data: a window or an index made for it would be discarded at
  /// once.
  func isRead(by generator: SharedGenerator) -> Bool {
    guard isSingle else { return false }
    switch type {
    case .value: return !query.parameters.showsAll && !generator.keeps(query.parameters)
    case .childAdded: return query.parameters.showsAll || !generator.keeps(query.parameters)
    case .childRemoved, .childChanged, .childMoved: return false
    }
  }

  /// The events that the listener waits for.
  var request: EventGenerator.Request { EventGenerator.Request(query.parameters, EventTypes(type)) }

  /// Whether it has got its first events, or gets them now. Before that it gets no changes.
  var isActive: Bool { active.load(ordering: .relaxed) }

  /// Called by the drain only, which delivers changes too.
  func activate() { active.store(true, ordering: .relaxed) }

  var isRemoved: Bool { removed.load(ordering: .acquiring) }

  /// - Returns: whether this call has removed it, and no earlier one.
  @discardableResult
  func remove() -> Bool { !removed.exchange(true, ordering: .acquiringAndReleasing) }

  /// Whether the block has to be called on an actor.
  let hasIsolation: Bool

  /// The actor on which the block has to be called; nil for the callback queue.
  var isolation: (any Actor)? { block.isolation }

  /// The actor on which the cancel block has to be called; nil for the callback queue.
  var cancelIsolation: (any Actor)? { cancelBlock?.isolation }

  /// Calls the block. The caller runs on its actor, else on the callback queue.
  func notify(_ snapshot: DataSnapshot, _ previousKey: String?) {
    block.call(snapshot, previousKey)
  }

  var hasCancelBlock: Bool { cancelBlock != nil }

  /// Calls the cancel block, if there is one.
  func cancel(_ error: DatabaseError) { cancelBlock?.call(error) }

  private static let lastHandle = Atomic<UInt>(0)

  static func nextHandle() -> DatabaseHandle {
    lastHandle.wrappingAdd(1, ordering: .relaxed).newValue
  }
}
