import DendroEngine
import DendroTree

// MARK: - Writing

extension DatabaseReference {
  /// Replaces everything here and below with a value of any `Encodable` type.
  ///
  /// - Parameters:
  ///   - value: a value of your own, a scalar, an array, …; a nil optional removes.
  ///   - encoder: says how dates, keys and so on are encoded.
  ///   - completion: called once on ``Database/callbackQueue`` when the write is durable or has failed.
  ///     Without one, ``DatabaseOptions/errorHandler`` gets the error.
  /// - Throws: what is wrong with the value, before anything is written: `EncodingError` with the path
  ///   to what cannot be encoded, or ``DatabaseError`` if the tree cannot hold it, or would give back another value
  ///   (<doc:TypedData#Empty-values>). The completion is not called then.
  /// - Complexity: O(size of the value · log children).
  @preconcurrency
  public func setValue<T: Encodable>(
    from value: T, encoder: Database.Encoder = Database.Encoder(),
    @_inheritActorContext completion: (@Sendable @isolated(any) (Error?) -> Void)? = nil
  ) throws {
    if completion == nil, let scalar = Scalar(of: value), scalar.isValid,
      location.count <= Limits.depth
    {
      return set(scalar)
    }
    let encoded = try encoder.encoded(value, at: location)
    if completion == nil, writeFailure == nil, let engine = try? usable() {
      do throws(ValidationError) {
        return try Writes.set(encoded, at: location) { engine.submit($0, completion: nil) }
      } catch {
        throw DatabaseError(error)
      }
    }
    // What is wrong with the value is thrown; what is wrong with the reference goes where it always goes.
    let write: EncodedWrite
    do throws(ValidationError) {
      write = try EncodedWrite.making(at: location) { (path, use) throws(ValidationError) in
        try Writes.set(encoded, at: path, use)
      }
    } catch {
      throw DatabaseError(error)
    }
    if let completion {
      self.write(Callback(completion)) { (_, use) in write.withView(use) }
    } else {
      self.write { (_, use) in write.withView(use) }
    }
  }

  /// `setValue(from:encoder:completion:)`, and waits until the write is durable.
  ///
  /// - Throws: `EncodingError` and ``DatabaseError``.
  @discardableResult
  public func setValue<T: Encodable>(
    from value: T, encoder: Database.Encoder = Database.Encoder()
  ) async throws -> DatabaseReference {
    let encoded = try encoder.encoded(value, at: location)
    return try await commit(
      made { (path, use) throws(ValidationError) in try Writes.set(encoded, at: path, use) })
  }
}

// MARK: - Reading

extension DatabaseQuery {
  /// Reads what is here now as a value of any `Decodable` type.
  ///
  /// - Parameters:
  ///   - type: what to decode. An optional of it if there may be nothing.
  ///   - decoder: says how dates, keys and so on are decoded.
  /// - Returns: the value.
  /// - Throws: `DecodingError` with the path to what does not fit, and ``DatabaseError``.
  public func getData<T: Decodable>(
    as type: T.Type, decoder: Database.Decoder = Database.Decoder()
  ) async throws -> T {
    try await getData().data(as: type, decoder: decoder)
  }
}

extension DataSnapshot {
  /// The data as a value of any `Decodable` type, decoded straight from the tree.
  ///
  /// No array is guessed: what is asked for as an array is read as one, and the same data as a
  /// dictionary if that is asked for.
  ///
  /// - Parameters:
  ///   - type: what to decode. An optional of it if there may be nothing.
  ///   - decoder: says how dates, keys and so on are decoded.
  /// - Returns: the value.
  /// - Throws: `DecodingError` with the path to what does not fit, from the root of the database on; `valueNotFound`
  ///   if there is nothing here and `type` is no optional.
  public func data<T: Decodable>(
    as type: T.Type, decoder: Database.Decoder = Database.Decoder()
  ) throws -> T {
    try decoder.decode(type, from: node, at: ref.location)
  }
}
