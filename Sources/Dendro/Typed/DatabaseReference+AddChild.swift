extension DatabaseReference {
  /// Writes a value of any `Encodable` type to a child with a new push id, as `childByAutoId()` and
  /// `setValue(from:)` do.
  ///
  /// - Returns: the new id, the key of the child.
  /// - Throws: as ``setValue(from:encoder:completion:)``; other errors are passed to ``DatabaseOptions/errorHandler``.
  @discardableResult
  public func addChild<T: Encodable>(
    from value: T, encoder: Database.Encoder = Database.Encoder()
  ) throws -> String {
    let child = childByAutoId()
    try child.setValue(from: value, encoder: encoder, completion: nil)
    return child.key ?? ""
  }

  /// `addChild(from:encoder:)`, and waits until the write is durable.
  ///
  /// - Throws: `EncodingError` and ``DatabaseError``.
  @discardableResult
  public func addChild<T: Encodable>(
    from value: T, encoder: Database.Encoder = Database.Encoder()
  ) async throws -> String {
    try await childByAutoId().setValue(from: value, encoder: encoder).key ?? ""
  }
}
