import DendroTree

// The data of a transaction as values of Swift.

extension MutableData {
  /// The integer here, also if it is stored as a double of the same value; nil if there is none. Nil removes.
  ///
  /// What ``ServerValue/timestamp()`` was set to here shows as nil: the time is known only when it is written.
  public var int: Int? {
    get { scalar?.int }
    set { value = newValue }
  }

  /// The number here; else nil. Integers beyond 2^53 are rounded to the nearest double. Nil removes.
  public var double: Double? {
    get { scalar?.double }
    set { value = newValue }
  }

  /// The string here; else nil. Nil removes.
  public var string: String? {
    get { scalar?.string }
    set { value = newValue }
  }

  /// The boolean here; else nil. Nil removes.
  public var bool: Bool? {
    get { scalar?.bool }
    set { value = newValue }
  }

  /// ``childData(byAppendingPath:)``.
  public subscript(path: String) -> MutableData { childData(byAppendingPath: path) }

  /// The data as a value of any `Decodable` type, decoded straight from the tree.
  ///
  /// - Throws: `DecodingError` as ``DataSnapshot/data(as:decoder:)``, with the path from the root of the database on.
  public func data<Value: Decodable>(
    as type: Value.Type, decoder: Database.Decoder = Database.Decoder()
  ) throws -> Value {
    try decoder.decode(type, from: node, at: place)
  }

  /// Replaces everything here and below with a value of any `Encodable` type; a nil optional removes.
  ///
  /// - Throws: `EncodingError`, with the path to what cannot be encoded. What the tree cannot hold, or would give back as
  ///   another value, ends the transaction.
  public func setValue<Value: Encodable>(
    from value: Value, encoder: Database.Encoder = Database.Encoder()
  ) throws {
    let encoded = try encoder.encoded(value, at: place)
    guard let path else { return }
    draft.check(encoded, at: path)
    draft.set(encoded, at: path)
  }

  private var scalar: Scalar? { path.flatMap { draft.scalar(at: $0) } }

  /// From the root of the database on.
  private var place: Path { path.map(draft.location.appending) ?? draft.location }
}

extension DatabaseReference {
  /// Changes what is here as a value of a type of yours.
  ///
  /// ```swift
  /// let place = try await room.runTransaction(as: Room.self) { room in
  ///   guard room != nil else { throw NoSuchRoom() }
  ///   room?.guests += 1
  ///   return room?.guests
  /// }
  /// ```
  ///
  /// Only the difference between the value before and after is written: fields that the type does not know stay as they are,
  /// and so do priorities. Elements of an array that stand at another place afterwards take theirs with them; an element of
  /// another array that is neither what it was nor one of the others is written anew.
  ///
  /// - Parameters:
  ///   - type: a type that comes back from its encoding equal.
  ///   - encoder: says how dates, keys and so on are encoded.
  ///   - decoder: says how they are decoded.
  ///   - body: gets the value here, nil if there is nothing, and changes it; nil removes everything. It may run several
  ///     times, never twice at once.
  /// - Returns: what `body` returned in the run that was written, once that is durable.
  /// - Throws: what `body` throws, `DecodingError` if what is here does not fit, and what
  ///   ``DatabaseReference/transaction(_:)`` and ``setValue(from:encoder:completion:)`` throw; nothing was written then.
  @discardableResult
  public func runTransaction<Value: Codable & SendableMetatype, Result: Sendable>(
    as type: Value.Type, encoder: Database.Encoder = Database.Encoder(),
    decoder: Database.Decoder = Database.Decoder(),
    _ body: @escaping @Sendable (inout Value?) throws -> Result
  ) async throws -> Result {
    try await transaction { data in
      var value = try data.data(as: Value?.self, decoder: decoder)
      // The value may be an object, which changes in place.
      let before = try value.map { try encoder.encoded($0, at: self.location) }
      let result = try body(&value)
      let after = try value.map { try encoder.encoded($0, at: self.location) }
      data.draft.change(from: before, to: after)
      return result
    }
  }
}
