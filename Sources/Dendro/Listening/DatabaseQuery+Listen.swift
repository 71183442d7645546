import DendroTree

// What `observe` does, with a token that removes the listener when it is released.

extension DatabaseQuery {
  /// Listens as ``observe(_:with:)`` does, until the token is released or cancelled.
  ///
  /// - Parameters:
  ///   - eventType: what `block` is called for. Default: `.value`.
  ///   - block: is called with each event, on its actor or else on ``Database/callbackQueue``.
  ///   - cancelBlock: gets the reason why no more events follow, as that of ``observe(_:with:withCancel:)``.
  /// - Returns: what keeps the listener. The compiler warns if it is dropped, since nothing would be heard then.
  @preconcurrency
  public func listen(
    to eventType: DataEventType = .value,
    @_inheritActorContext perform block: @escaping @Sendable @isolated(any) (DataSnapshot) -> Void,
    @_inheritActorContext onCancel cancelBlock: (@Sendable @isolated(any) (Error) -> Void)? = nil
  ) -> ListenerToken {
    ListenerToken(self, listen(eventType, Callback(block), cancelBlock.map { Callback($0) }))
  }

  /// Listens to what is here as a value of any `Decodable` type, until the token is released or cancelled.
  ///
  /// ```swift
  /// token = ref.child("profile").listen(as: Profile?.self) { profile in
  ///   show(profile)
  /// }
  /// ```
  ///
  /// It is decoded where `block` is called. A state that does not fit is an error, and listening goes on with the next
  /// one.
  ///
  /// - Parameters:
  ///   - type: what to decode. An optional of it if there may be nothing.
  ///   - decoder: says how dates, keys and so on are decoded.
  ///   - block: is called with what is here now, and then with whatever it becomes, on its actor or else on
  ///     ``Database/callbackQueue``.
  ///   - errorBlock: gets `DecodingError` for each state that does not fit, and ``DatabaseError``, the reason why no more
  ///     events follow, as the last if both blocks belong to one actor or to none. Without it ``DatabaseOptions/errorHandler`` gets those of states that do not fit.
  /// - Returns: what keeps the listener.
  @preconcurrency
  public func listen<Value: Decodable & SendableMetatype>(
    as type: Value.Type, decoder: Database.Decoder = Database.Decoder(),
    @_inheritActorContext perform block: @escaping @Sendable @isolated(any) (Value) -> Void,
    @_inheritActorContext onError errorBlock: (@Sendable @isolated(any) (Error) -> Void)? = nil
  ) -> ListenerToken {
    listen(perform: block, onError: errorBlock) { try $0.data(as: Value.self, decoder: decoder) }
  }

  /// Listens to the children of the query as values of one type, until the token is released or cancelled.
  ///
  /// ```swift
  /// token = room.child("messages").queryLimited(toLast: 50).listen(as: Children<Message>.self) { messages in
  ///   show(messages.values)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - type: the children's.
  ///   - undecodable: what becomes of a child that does not fit: the whole state is an error by default.
  ///   - decoder: says how dates, keys and so on are decoded.
  ///   - block: is called with what is here now, and then with whatever it becomes, on its actor or else on
  ///     ``Database/callbackQueue``.
  ///   - errorBlock: as that of ``listen(as:decoder:perform:onError:)``.
  /// - Returns: what keeps the listener.
  @preconcurrency
  public func listen<Value: Decodable & SendableMetatype>(
    as type: Children<Value>.Type, undecodable: UndecodableChildren = .throwing,
    decoder: Database.Decoder = Database.Decoder(),
    @_inheritActorContext perform block:
      @escaping @Sendable @isolated(any) (Children<Value>) -> Void,
    @_inheritActorContext onError errorBlock: (@Sendable @isolated(any) (Error) -> Void)? = nil
  ) -> ListenerToken {
    listen(perform: block, onError: errorBlock) {
      try $0.children(as: Value.self, undecodable: undecodable, decoder: decoder)
    }
  }

  private func listen<Value>(
    perform block: @escaping @Sendable @isolated(any) (Value) -> Void,
    onError errorBlock: (@Sendable @isolated(any) (Error) -> Void)?,
    decoding decode: @escaping @Sendable (DataSnapshot) throws -> Value
  ) -> ListenerToken {
    let cancel = errorBlock.map { Callback<CancelFunction>($0) }
    let perform = Reinterpretation.value(block, as: (@Sendable (Value) -> Void).self)
    let hub = owner.hub
    let isolation = block.isolation
    let event = Callback<EventFunction>(isolation: isolation) { snapshot, _ in
      do {
        perform(try decode(snapshot))
      } catch {
        guard let cancel else { return hub.report(DatabaseError(undecodable: error)) }
        if cancel.isolation === isolation { return cancel.call(error) }
        hub.enqueue(on: cancel.isolation) { cancel.call(error) }
      }
    }
    return ListenerToken(self, listen(.value, event, cancel))
  }
}
