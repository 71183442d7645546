import DendroEngine
import DendroTree

/// The children of one location in an order, a range and up to a number, for listeners and one-time reads. A
/// ``DatabaseReference`` is the query that shows all.
///
/// ```swift
/// let best = ref.child("posts").queryOrdered(byChild: "stars").queryLimited(toLast: 10)
/// ```
///
/// With a range or a limit only children are shown, never a scalar at the location itself, nor its
/// priority. Any thread may use a query; it never changes. One that was made from a bad path, or whose
/// parameters contradict each other, carries the error: every operation on it fails with that.
public class DatabaseQuery: @unchecked Sendable {
  // Unchecked only because the class has a subclass: both have immutable, `Sendable` properties alone,
  // and no class outside this module can inherit from them.
  /// The database to which it belongs. A reference shows it as `database`.
  let owner: Database
  /// Where it is.
  let location: Path
  /// Why nothing can be done at the location.
  private let locationFailure: DatabaseError?
  /// Nil if there are no query parameters, so that references, of which there are many, stay small.
  private let asked: Asked?

  /// The calls that made the query, and their result.
  private final class Asked: Sendable {
    let request: QueryRequest
    let parameters: QueryParameters
    /// The error of a call that is wrong whatever calls follow.
    let refusal: DatabaseError?
    /// Why nothing can be done with these parameters.
    let failure: DatabaseError?

    init(_ request: QueryRequest, refusal: DatabaseError?, at location: Path) {
      self.request = request
      self.refusal = refusal
      do throws(ValidationError) {
        parameters = try request.parameters()
        failure = refusal
      } catch {
        parameters = QueryParameters()
        failure = refusal ?? DatabaseError(error, at: location)
      }
    }
  }

  init(_ database: Database, _ location: Path, failure: DatabaseError? = nil) {
    owner = database
    self.location = location
    locationFailure = failure
    asked = nil
  }

  private init(_ query: DatabaseQuery, _ request: QueryRequest, refusal: DatabaseError?) {
    owner = query.owner
    location = query.location
    locationFailure = query.locationFailure
    asked = Asked(request, refusal: refusal, at: location)
  }

  /// This query with one more thing asked for.
  func asking(
    _ change: (inout QueryRequest) throws(ValidationError) -> Void
  ) -> DatabaseQuery {
    var request = asked?.request ?? QueryRequest()
    var refusal = asked?.refusal
    do throws(ValidationError) {
      try change(&request)
    } catch {
      refusal = refusal ?? DatabaseError(error, at: location)
    }
    return DatabaseQuery(self, request, refusal: refusal)
  }

  /// Which children are shown, and in which order. A reference shows all in the default order.
  var parameters: QueryParameters { asked?.parameters ?? QueryParameters() }

  /// The location with these parameters.
  var target: QueryTarget { QueryTarget(location, parameters) }

  /// Why nothing can be done here.
  var failure: DatabaseError? { locationFailure ?? asked?.failure }

  /// The location without query parameters.
  public var ref: DatabaseReference { DatabaseReference(owner, location, failure: locationFailure) }

  /// The engine, if everything about this query is in order.
  func usable() throws(DatabaseError) -> Engine {
    if let failure { throw failure }
    return try owner.usable()
  }

  /// The engine that has the data, if everything about this query is in order.
  func keeping() throws(DatabaseError) -> Engine {
    if let failure { throw failure }
    return try owner.keeping()
  }

  /// Where the data come from, if everything about this query is in order.
  func source() throws(DatabaseError) -> DataSource {
    if let failure { throw failure }
    return try owner.source(of: location)
  }

  /// `source()`, for listeners. A path deeper than data can be is refused, since finding listeners recurses
  /// as deep as their paths.
  func listenable() throws(DatabaseError) -> DataSource {
    let depth = location.count
    guard depth <= Limits.depth else {
      throw failure
        ?? DatabaseError(
          ValidationError(
            .invalidPath,
            "nothing can listen \(depth) levels deep: the data has \(Limits.depth) levels at most"))
    }
    return try source()
  }

  /// The location's address, and the calls that make the query.
  public func description() -> String {
    DatabaseReference(owner, location).url + QueryDescription.calls(of: parameters)
  }
}

extension DatabaseQuery: CustomDebugStringConvertible {
  /// ``description()``, and the error that it carries.
  public var debugDescription: String {
    failure.map { "\(description()) (\($0))" } ?? description()
  }
}

extension DatabaseQuery: Hashable {
  /// Whether both name the same location of the same open database with the same parameters.
  public static func == (a: DatabaseQuery, b: DatabaseQuery) -> Bool {
    a === b
      || (a.owner === b.owner && a.location == b.location && a.parameters == b.parameters
        && a.failure == b.failure)
  }

  /// Hashes database, path and parameters.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(owner))
    hasher.combine(location)
    hasher.combine(parameters)
  }
}

extension DatabaseError {
  /// A refusal of query parameters, with the location.
  fileprivate init(_ error: ValidationError, at location: Path) {
    self.init(ValidationError(error.kind, "the query at \(location): \(error.message)"))
  }
}

// MARK: - Reading once

extension DatabaseQuery {
  /// Reads what is here now: of a query, the children that it shows, in its order.
  ///
  /// A query that has to look at more than a thousand children does so on a background thread; a kept order
  /// (``DatabaseOptions/queryOrderLimit``) spares it that. The snapshot is of the moment of the call in any
  /// case; events of later writes may come before it then.
  ///
  /// - Parameter block: called once on ``Database/callbackQueue`` with an error and an empty snapshot,
  ///   or without an error and with the data, which may be nothing (``DataSnapshot/exists()``).
  @preconcurrency
  public func getData(
    @_inheritActorContext completion block:
      @escaping @Sendable @isolated(any) (Error?, DataSnapshot) -> Void
  ) {
    let block = Callback<ReadFunction>(block)
    do throws(DatabaseError) {
      let source = try source()
      if case .remote(let remote) = source {
        return remote.read(target) { [self] result in
          finish(block, result.map { snapshot(ofShown: $0) })
        }
      }
      let place = place(source)
      if let head = place.node {
        guard head.isPartial || isLong(head.node) else {
          let snapshot = snapshot(of: head.node)
          return owner.hub.enqueue(on: block.isolation) { block.call(nil, snapshot) }
        }
        if let snapshot = quickSnapshot(of: head.node) {
          return owner.hub.enqueue(on: block.isolation) { block.call(nil, snapshot) }
        }
      }
      BackgroundThread.read { [self] in
        finish(block, Result { () throws(DatabaseError) in snapshot(of: try whole(place)) })
      }
    } catch {
      finish(block, .failure(error))
    }
  }

  private func finish(
    _ block: Callback<ReadFunction>, _ result: Result<DataSnapshot, DatabaseError>
  ) {
    owner.hub.enqueue(on: block.isolation) { [ref] in
      switch result {
      case .success(let snapshot): block.call(nil, snapshot)
      case .failure(let error): block.call(error, DataSnapshot(.empty, at: ref))
      }
    }
  }

  /// The snapshot of what the query shows.
  private func snapshot(ofShown node: Node) -> DataSnapshot {
    DataSnapshot(node, at: ref, order: parameters.order)
  }

  /// Reads what is here now: of a query, the children that it shows, in its order. Every write admitted
  /// before the call shows, whether or not it is durable.
  ///
  /// It waits neither for writers nor for the disk, but for data that was not read since the database was
  /// opened. It reads such data, and looks at more than a thousand children of a query, in the background,
  /// never on the caller's actor.
  ///
  /// - Throws: ``DatabaseError`` if the reference or the query is bad, the database is closed, or data
  ///   cannot be read from its file.
  /// - Complexity: O(segments · log children) for a location, and for queries by key O(children shown)
  ///   more. In other orders a query looks at all n children: O(n), with a limit O(n log limit) in time
  ///   and O(limit) in memory; by priority, which is the default, only if some child has one. In a kept
  ///   order it is O(log n) for each child that changed since the last query, and O(shown · log n) if
  ///   one of them changed what the query shows.
  public func getData() async throws -> DataSnapshot {
    let source = try source()
    if case .remote(let remote) = source {
      return snapshot(ofShown: try await remote.read(target))
    }
    let place = place(source)
    guard let head = place.node else {
      return await snapshot(showing: try await wholeInBackground(place))
    }
    // A location shows all that is there.
    if asked == nil, !head.isPartial { return DataSnapshot(head.node, at: ref) }
    // If an order is kept, everything here was read before.
    if isLong(head.node), let snapshot = quickSnapshot(of: head.node) { return snapshot }
    return await snapshot(showing: head.isPartial ? try await wholeInBackground(place) : head.node)
  }

  /// What the query needs of a node of the head, with all its pages: of a query that does not look at all
  /// children, those that it shows.
  private func whole(_ place: HeadPlace) throws(DatabaseError) -> Node {
    let parameters = parameters
    do throws(EngineError) {
      let head = try place.read()
      guard !parameters.showsAll, !head.node.isScanned(by: parameters) else {
        return try head.whole()
      }
      return try head.whole { $0.filtered(by: parameters) }
    } catch {
      throw DatabaseError(error)
    }
  }

  private func wholeInBackground(_ place: HeadPlace) async throws(DatabaseError) -> Node {
    try await BackgroundThread.read { () throws(DatabaseError) in try self.whole(place) }
  }

  /// What the query shows of a node at its location, filtered in the background if that takes long.
  ///
  /// - Parameter isPast: whether the node is of a state of the past, which shares little with what the kept
  ///   orders follow.
  func snapshot(showing node: Node, isPast: Bool = false) async -> DataSnapshot {
    guard isLong(node) else { return snapshot(of: node, isPast: isPast) }
    return await snapshotInBackground(of: node, isPast: isPast)
  }

  private func place(_ source: DataSource) -> HeadPlace {
    if case .engine(let engine) = source, !location.isInfo { return engine.place(at: location) }
    return HeadPlace(owner.connection.withInfo { $0.node(at: location) })
  }

  /// Reads what an iterator here needs, in the background if that was not read since the database was opened.
  /// From then on all states of this location are in memory.
  func loadForListening(_ source: DataSource) async throws(DatabaseError) {
    guard case .engine(let engine) = source, !location.isInfo else { return }
    let place = engine.place(at: location)
    guard place.node?.isPartial ?? true else { return }
    do throws(EngineError) {
      _ = try await BackgroundThread.read { () throws(EngineError) in try place.read().whole() }
    } catch {
      throw DatabaseError(error)
    }
  }

  private func snapshot(of node: Node, isPast: Bool = false) -> DataSnapshot {
    let (shown, ranked) = isPast ? (node.filtered(by: parameters), nil) : shown(of: node)
    return DataSnapshot(shown, at: ref, order: parameters.order, ranked: ranked)
  }

  /// What the query shows of the present, by an order that is kept if there is one: the children are then
  /// known in that order.
  private func shown(of node: Node) -> (Node, ranked: [OrderedChildren.Element]?) {
    let parameters = parameters
    guard isLong(node), node.isScanned(by: parameters) else {
      return (node.filtered(by: parameters), nil)
    }
    let order =
      owner.hub.usedOrder(parameters.order, at: location)
      ?? owner.orderCache.order(
        parameters.order, at: location, childCount: node.childCount,
        longByteCount: { node.longSortByteCount(in: parameters.order) })
    guard let shown = order?.shown(of: node, by: parameters) else {
      return (node.filtered(by: parameters), nil)
    }
    return (shown.node, shown.ranked)
  }

  /// What the query shows of the present, if a kept order gives that quickly.
  private func quickSnapshot(of node: Node) -> DataSnapshot? {
    let parameters = parameters
    guard node.isScanned(by: parameters),
      let order = owner.hub.usedOrder(parameters.order, at: location)
        ?? owner.orderCache.keptOrder(
          parameters.order, at: location, childCount: node.childCount),
      let shown = order.quicklyShown(of: node, by: parameters)
    else { return nil }
    return DataSnapshot(shown.node, at: ref, order: parameters.order, ranked: shown.ranked)
  }

  @concurrent private func snapshotInBackground(of node: Node, isPast: Bool) async -> DataSnapshot {
    snapshot(of: node, isPast: isPast)
  }

  /// Whether filtering is too long for the caller's actor.
  private func isLong(_ node: Node) -> Bool { node.filteringCost(parameters) > 1_000 }
}
