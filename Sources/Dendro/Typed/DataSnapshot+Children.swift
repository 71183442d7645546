import DendroTree

extension DataSnapshot {
  /// The children as values of one type, in the order of the query that made the snapshot; none if there is nothing here.
  ///
  /// - Parameters:
  ///   - type: of each child.
  ///   - undecodable: what becomes of a child that does not fit: throws by default.
  ///   - decoder: says how dates, keys and so on are decoded.
  /// - Throws: `DecodingError` with the path to what does not fit, the key of its child in it; `typeMismatch` if there is a
  ///   scalar here.
  /// - Complexity: O(size of the data).
  public func children<Value: Decodable>(
    as type: Value.Type, undecodable: UndecodableChildren = .throwing,
    decoder: Database.Decoder = Database.Decoder()
  ) throws -> Children<Value> {
    if let scalar = node.scalar {
      throw DecodingError.typeMismatch(
        Children<Value>.self,
        .init(
          codingPath: [], debugDescription: "expected children, found \(scalar.foundationValue)")
      ).located(at: ref.location)
    }
    var children: [Child<Value>] = []
    children.reserveCapacity(node.childCount)
    let run = decoder.run()
    for child in self {
      do {
        children.append(
          Child(
            key: child.key,
            priority: child.node.priority.map { Database.Value($0) } ?? .null,
            value: try run.decode(type, from: child.node)))
      } catch {
        let located = (error as? DecodingError)?.located(at: child.ref.location) ?? error
        guard let report = undecodable.report else { throw located }
        report(child, located)
      }
    }
    return Children(children)
  }
}

extension DatabaseQuery {
  /// Reads the children of the query as values of one type: ``DataSnapshot/children(as:undecodable:decoder:)``.
  ///
  /// - Throws: `DecodingError` with the path to what does not fit, and ``DatabaseError``.
  public func getData<Value: Decodable>(
    as type: Children<Value>.Type, undecodable: UndecodableChildren = .throwing,
    decoder: Database.Decoder = Database.Decoder()
  ) async throws -> Children<Value> {
    try await getData().children(as: Value.self, undecodable: undecodable, decoder: decoder)
  }

  /// What is here now as a value of any `Decodable` type, and then whatever it becomes: ``snapshots``, decoded where an
  /// element is asked for.
  ///
  /// - Parameters:
  ///   - type: what to decode. An optional of it if there may be nothing.
  ///   - decoder: says how dates, keys and so on are decoded.
  /// - Returns: a sequence that ends with `DecodingError` at data that do not fit, and else as ``snapshots`` does.
  public func values<Value: Decodable & Sendable>(
    as type: Value.Type, decoder: Database.Decoder = Database.Decoder()
  ) -> some AsyncSequence<Value, any Error> & Sendable {
    snapshots.map { try $0.data(as: type, decoder: decoder) }
  }

  /// The children of the query as values of one type, and then whatever they become.
  ///
  /// - Returns: a sequence that ends with `DecodingError` at a child that does not fit, unless it is skipped, and else as
  ///   ``snapshots`` does.
  public func values<Value: Decodable & Sendable>(
    as type: Children<Value>.Type, undecodable: UndecodableChildren = .throwing,
    decoder: Database.Decoder = Database.Decoder()
  ) -> some AsyncSequence<Children<Value>, any Error> & Sendable {
    snapshots.map { snapshot in
      try snapshot.children(as: Value.self, undecodable: undecodable, decoder: decoder)
    }
  }
}
