import Dendro
import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// The state of a database that one request shows to an authorizer. It is pinned when the authorizer first looks at it.
final class RequestState: Sendable {
  private let database: Database?
  private let pin: @Sendable () -> Pinned?
  private let progress = Mutex(Progress())

  /// One state.
  struct Pinned: Sendable {
    let head: HeadNode
    let time: Int64
    /// Makes the tree after the write.
    let after: @Sendable () throws(EngineError) -> Node
  }

  private struct Progress {
    var pinned: Pinned?
    var after: Node?
    var wasLookedAt = false
    var isUnreadable = false
  }

  /// - Parameter pin: nil if the database is closed.
  init(_ database: Database?, _ pin: @escaping @Sendable () -> Pinned?) {
    self.database = database
    self.pin = pin
  }

  /// For a request that concerns no data.
  static let none = RequestState(nil) { nil }

  /// For a request whose data are not known yet: what matters is whether the authorizer looks at them.
  static func unknown() -> RequestState {
    RequestState(nothing) {
      Pinned(head: HeadNode(.empty), time: systemMilliseconds()) { .empty }
    }
  }

  private static let nothing = Database.showing(
    HistoryState(roots: TreeRoots(), lsn: .zero))

  /// Whether the authorizer has looked at the data or the time.
  var wasLookedAt: Bool { progress.withLock { $0.wasLookedAt } }

  /// Whether it has looked at what could not be read.
  var isUnreadable: Bool { progress.withLock { $0.isUnreadable } }

  var time: Int64 { pinned()?.time ?? systemMilliseconds() }

  /// - Parameter path: nil for one that is impossible.
  func snapshot(at path: Path?, isNew: Bool) -> DataSnapshot {
    guard let database else { preconditionFailure("nothing is asked of a database") }
    guard let path else {
      progress.withLock { $0.wasLookedAt = true }
      return database.snapshot(.empty, at: .root)
    }
    guard let pinned = pinned() else {
      progress.withLock { $0.isUnreadable = true }
      return database.snapshot(.empty, at: path)
    }
    do throws(EngineError) {
      let root = isNew ? try after(pinned) : pinned.head.node
      let node = try pinned.head.whole { _ in root.node(at: path) }
      return database.snapshot(node, at: path)
    } catch {
      progress.withLock { $0.isUnreadable = true }
      return database.snapshot(.empty, at: path)
    }
  }

  private func pinned() -> Pinned? {
    progress.withLock { progress in
      progress.wasLookedAt = true
      if progress.pinned == nil { progress.pinned = pin() }
      return progress.pinned
    }
  }

  private func after(_ pinned: Pinned) throws(EngineError) -> Node {
    if let after = progress.withLock({ $0.after }) { return after }
    let after = try pinned.after()
    progress.withLock { $0.after = after }
    return after
  }
}
