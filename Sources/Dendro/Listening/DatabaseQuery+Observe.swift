// Listeners get the events of a write as soon as it is admitted, before it is on the disk, in the order of
// the writes, on the block's actor or else on the callback queue. If the disk then refuses the write, they get the events of its undo.

extension DatabaseQuery {
  /// Listens: `block` is called with each event of this kind, on its actor or else on ``Database/callbackQueue``.
  ///
  /// `.value` comes once at the beginning, with a snapshot of nothing if there is nothing, and
  /// `.childAdded` once for every child; then each write that changed what the query shows raises its
  /// events. For one write all removed children come first, then the added, the moved and the changed
  /// ones, and the value last; all listeners to an equal query get one before any gets the next, and share
  /// its snapshot. A listener that falls far behind, by 64 writes at least, is given the difference from
  /// what it saw last instead of every state in between. In any case the events come before the completion
  /// block of the write, unless the listener's data is still being read.
  ///
  /// The first listener to a query that is sorted by a child or by value, or by priority if there are
  /// any, sorts the children once, O(n log n); from then on a write costs O(log n) for each child that it
  /// changes. Equal orders of a location are kept once. The callback queue does this work: writers do not
  /// wait for it.
  ///
  /// If data of the location is still in the checkpoint (``DatabaseOptions/loading``), all of it is read in the
  /// background, however little of it the query shows. The first event is of the moment of the call in any case; it
  /// and those of later writes come once the data is read, and other events and completions do not wait for that.
  /// Data that cannot be read ends the listener with an error.
  ///
  /// While the listener is registered the database stays open. After ``removeObserver(withHandle:)`` has
  /// returned on the callback queue the block is not called again. Registering and removing a listener cost
  /// the same however many others there are.
  ///
  /// - Returns: what to remove the listener by. ``listen(to:perform:onCancel:)`` returns a token that removes it by itself.
  /// - Complexity: O(1); until all of the database is in memory, the first listener of a location looks for data that
  ///   has to be read, O(data of the location).
  @preconcurrency
  @discardableResult
  public func observe(
    _ eventType: DataEventType,
    @_inheritActorContext with block: @escaping @Sendable @isolated(any) (DataSnapshot) -> Void
  ) -> DatabaseHandle {
    listen(eventType, Callback(block))
  }

  /// ``observe(_:with:)``; `block` also gets the key of the sibling before the child, nil for the first.
  @preconcurrency
  @discardableResult
  public func observe(
    _ eventType: DataEventType,
    @_inheritActorContext andPreviousSiblingKeyWith block:
      @escaping @Sendable @isolated(any) (DataSnapshot, String?) -> Void
  ) -> DatabaseHandle {
    listen(eventType, Callback(block))
  }

  /// ``observe(_:with:)``; `cancelBlock` gets the reason why no more events follow: the reference is bad, the
  /// database was closed, its data is damaged, or a directory can be followed no longer.
  @preconcurrency
  @discardableResult
  public func observe(
    _ eventType: DataEventType,
    @_inheritActorContext with block: @escaping @Sendable @isolated(any) (DataSnapshot) -> Void,
    @_inheritActorContext withCancel cancelBlock: (@Sendable @isolated(any) (Error) -> Void)?
  ) -> DatabaseHandle {
    listen(eventType, Callback(block), cancelBlock.map { Callback($0) })
  }

  /// ``observe(_:andPreviousSiblingKeyWith:)`` with a cancel block.
  @preconcurrency
  @discardableResult
  public func observe(
    _ eventType: DataEventType,
    @_inheritActorContext andPreviousSiblingKeyWith block:
      @escaping @Sendable @isolated(any) (DataSnapshot, String?) -> Void,
    @_inheritActorContext withCancel cancelBlock: (@Sendable @isolated(any) (Error) -> Void)?
  ) -> DatabaseHandle {
    listen(eventType, Callback(block), cancelBlock.map { Callback($0) })
  }

  /// Listens for one event. The listener is removed before `block` is called, so what the block writes
  /// does not call it again.
  @preconcurrency
  public func observeSingleEvent(
    of eventType: DataEventType,
    @_inheritActorContext with block: @escaping @Sendable @isolated(any) (DataSnapshot) -> Void
  ) {
    listen(eventType, Callback(block), isSingle: true)
  }

  /// ``observeSingleEvent(of:with:)``; `block` also gets the key of the sibling before the child.
  @preconcurrency
  public func observeSingleEvent(
    of eventType: DataEventType,
    @_inheritActorContext andPreviousSiblingKeyWith block:
      @escaping @Sendable @isolated(any) (DataSnapshot, String?) -> Void
  ) {
    listen(eventType, Callback(block), isSingle: true)
  }

  /// ``observeSingleEvent(of:with:)``; `cancelBlock` gets the reason why there will be no event.
  @preconcurrency
  public func observeSingleEvent(
    of eventType: DataEventType,
    @_inheritActorContext with block: @escaping @Sendable @isolated(any) (DataSnapshot) -> Void,
    @_inheritActorContext withCancel cancelBlock: (@Sendable @isolated(any) (Error) -> Void)?
  ) {
    listen(eventType, Callback(block), cancelBlock.map { Callback($0) }, isSingle: true)
  }

  /// ``observeSingleEvent(of:andPreviousSiblingKeyWith:)`` with a cancel block.
  @preconcurrency
  public func observeSingleEvent(
    of eventType: DataEventType,
    @_inheritActorContext andPreviousSiblingKeyWith block:
      @escaping @Sendable @isolated(any) (DataSnapshot, String?) -> Void,
    @_inheritActorContext withCancel cancelBlock: (@Sendable @isolated(any) (Error) -> Void)?
  ) {
    listen(eventType, Callback(block), cancelBlock.map { Callback($0) }, isSingle: true)
  }

  /// Waits for one event, and returns its snapshot with the key of the sibling before the child.
  ///
  /// A snapshot of nothing if there will be no event: the reference is bad, the database was closed, the
  /// listener was removed by ``removeAllObservers()``, or the task was cancelled, which removes it.
  public func observeSingleEventAndPreviousSiblingKey(
    of eventType: DataEventType
  ) async -> (DataSnapshot, String?) {
    let wait = SingleEventWait(self)
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        guard wait.begin(continuation) else { return }
        let answer = SingleEventAnswer(wait)
        wait.listens(
          listen(
            eventType, Callback { answer.give($0, $1) }, Callback { _ in answer.giveNothing() },
            isSingle: true))
      }
    } onCancel: {
      wait.cancel()
    }
  }

  /// Removes the listener with this handle, if it listens here: to an equal query, or, if this is a
  /// reference or has its default parameters, to any query of exactly this location. Other handles are
  /// ignored.
  public func removeObserver(withHandle handle: DatabaseHandle) {
    owner.hub.remove(handle, of: self)
  }

  /// Removes all listeners to queries equal to this one; on a reference, or a query that has its default
  /// parameters, those to any query of exactly this location. Those above and below stay, and so do
  /// iterators of ``snapshots`` and ``childEvents()``.
  public func removeAllObservers() { owner.hub.removeAll(of: self) }

  @discardableResult
  func listen(
    _ type: DataEventType, _ block: Callback<EventFunction>,
    _ cancel: Callback<CancelFunction>? = nil, isSingle: Bool = false
  ) -> DatabaseHandle {
    let registration = Registration(
      self, type, isSingle: isSingle, block: block, cancel: cancel)
    do throws(DatabaseError) {
      owner.hub.register(registration, try listenable())
    } catch {
      owner.hub.refuse(registration, error)
    }
    return registration.handle
  }
}
