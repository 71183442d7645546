import DendroTree

// Each iterator is a listener of its own, which makes its elements when it is asked: it does not depend on
// the callback queue.

extension DatabaseQuery {
  /// What is here now, and then whatever it becomes.
  ///
  /// ```swift
  /// for try await snapshot in ref.child("posts").queryLimited(toLast: 10).snapshots {
  ///   show(snapshot)
  /// }
  /// ```
  ///
  /// A consumer that is slower than the writers gets the newest snapshot each time it asks, not every one
  /// in between. Writes show before they are durable, in their order: a snapshot requested after a write was
  /// admitted includes it. Completion blocks come after the events of listeners, but may come before or
  /// after the snapshots of an iterator. The sequence ends when the task is cancelled or the database is
  /// closed; it throws at its beginning if the query is bad or the database was closed before. While an
  /// iterator of it is held the database stays open.
  public var snapshots: Snapshots { Snapshots(query: self) }

  /// What happens to the children: each that is here now as added, then each change in order.
  ///
  /// ```swift
  /// for try await event in ref.child("posts").childEvents() where event.type == .childAdded {
  ///   show(event.snapshot)
  /// }
  /// ```
  ///
  /// For one write all removed children come first, then the added, the moved and the changed ones. A
  /// consumer that falls more than 64 writes behind gets the difference from what it saw last instead of
  /// every write in between. It begins, ends and throws as ``snapshots`` does; completion blocks may come
  /// before or after its events too.
  public func childEvents() -> ChildEvents { ChildEvents(query: self) }

  /// The values of a query, as ``DatabaseQuery/snapshots`` gives them.
  ///
  /// Any thread may use it; each iterator starts from the beginning.
  public struct Snapshots: AsyncSequence, Sendable {
    fileprivate let query: DatabaseQuery

    /// Begins with what is here when the first element is asked for.
    public func makeAsyncIterator() -> Iterator { Iterator(feed: QueryFeed(query, .value)) }

    /// An iterator for one task at a time. It stops listening when it is released.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate let feed: QueryFeed

      /// The first snapshot at once, then the newest one as soon as it differs; nil at the end.
      ///
      /// - Throws: ``DatabaseError``: at the first call if the query is bad or the database is closed; later
      ///   if data turns out to be damaged, or a directory can be followed no longer.
      public mutating func next(
        isolation actor: isolated (any Actor)? = #isolation
      ) async throws(DatabaseError) -> DataSnapshot? {
        guard let event = try await feed.next(isolation: actor) else { return nil }
        return event.snapshot(of: feed.query)
      }
    }
  }

  /// The events of a query's children, as ``DatabaseQuery/childEvents()`` gives them.
  ///
  /// Any thread may use it; each iterator starts from the beginning.
  public struct ChildEvents: AsyncSequence, Sendable {
    fileprivate let query: DatabaseQuery

    /// Begins with what is here when the first element is asked for.
    public func makeAsyncIterator() -> Iterator {
      Iterator(feed: QueryFeed(query, [.added, .removed, .changed, .moved]))
    }

    /// An iterator for one task at a time. It stops listening when it is released.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate let feed: QueryFeed

      /// The next event as soon as there is one; nil at the end.
      ///
      /// - Throws: ``DatabaseError``: at the first call if the query is bad or the database is closed; later
      ///   if data turns out to be damaged, or a directory can be followed no longer.
      public mutating func next(
        isolation actor: isolated (any Actor)? = #isolation
      ) async throws(DatabaseError) -> ChildEvent? {
        guard let event = try await feed.next(isolation: actor) else { return nil }
        return ChildEvent(
          type: event.type, snapshot: event.snapshot(of: feed.query),
          previousSiblingKey: event.previousKey?.string)
      }
    }
  }
}

/// One thing that happened to a child of a query. A value; any thread.
public struct ChildEvent: Sendable {
  /// Added, removed, changed or moved; never ``DataEventType/value``.
  public let type: DataEventType
  /// The child: with the data that it had if it was removed, otherwise with what it has.
  public let snapshot: DataSnapshot
  /// The key of the sibling before it in the query's order; nil for the first, and if it was removed.
  public let previousSiblingKey: String?
}
