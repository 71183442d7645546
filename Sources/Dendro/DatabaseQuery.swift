import DendroEngine
import DendroTree

/// A view of one location: what listeners and one-time reads are asked of.
///
/// Any thread may use it; it never changes. One that was made from a bad path carries the error and
/// hands it to every operation.
public class DatabaseQuery: @unchecked Sendable {
  // Unchecked only because the class has a subclass: both have immutable, `Sendable` properties alone,
  // and no class outside this module can inherit from them.
  let store: Database
  let path: Path
  /// Which children are shown, and in which order. A reference shows all in the default order.
  let parameters: QueryParameters
  /// Why nothing can be done here.
  let failure: DatabaseError?

  init(
    _ database: Database, _ path: Path, parameters: QueryParameters = QueryParameters(),
    failure: DatabaseError? = nil
  ) {
    store = database
    self.path = path
    self.parameters = parameters
    self.failure = failure
  }

  /// The location without query parameters.
  public var ref: DatabaseReference { DatabaseReference(store, path, failure: failure) }

  /// The engine, if everything about this query is in order.
  func usable() throws(DatabaseError) -> Engine {
    if let failure { throw failure }
    return try store.usable()
  }
}

extension DatabaseQuery: Hashable {
  /// Whether both name the same location of the same open database with the same parameters.
  public static func == (a: DatabaseQuery, b: DatabaseQuery) -> Bool {
    a === b
      || (a.store === b.store && a.path == b.path && a.parameters == b.parameters
        && a.failure == b.failure)
  }

  /// Hashes database, path and parameters.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(store))
    hasher.combine(path)
    hasher.combine(parameters)
  }
}

// MARK: - Reading once

extension DatabaseQuery {
  /// Reads what is here now.
  ///
  /// - Parameter block: called once on ``Database/callbackQueue`` with an error and an empty snapshot,
  ///   or without an error and with the data, which may be nothing (``DataSnapshot/exists()``).
  public func getData(completion block: @escaping (Error?, DataSnapshot) -> Void) {
    let block = PlainClosure(block)
    do throws(DatabaseError) {
      let snapshot = try read()
      store.hub.enqueue { block.call(nil, snapshot) }
    } catch {
      let nothing = DataSnapshot(.empty, at: ref)
      store.hub.enqueue { block.call(error, nothing) }
    }
  }

  /// Reads what is here now. Every write admitted before the call shows, whether or not it is durable.
  ///
  /// - Throws: ``DatabaseError`` where the reference is bad or the database is closed.
  /// - Complexity: O(segments · log children); it does not wait for the disk.
  public nonisolated(nonsending) func getData() async throws -> DataSnapshot { try read() }

  private func read() throws(DatabaseError) -> DataSnapshot {
    DataSnapshot(try usable().view(at: path), at: ref)
  }
}
