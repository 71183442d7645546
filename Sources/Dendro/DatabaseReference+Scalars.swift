import DendroEngine
import DendroTree

// The compiler takes these if it knows the type of a value: nothing has to be found out about it when the
// program runs. They do what the forms with `Any?` do.

// MARK: - Setting scalars

extension DatabaseReference {
  /// `setValue(_:)` with a string of at most 10 MiB, an integer, a finite double or a boolean, the type of which the compiler
  /// knows.
  public func setValue<Value: DatabaseScalar>(_ value: Value) { set(value._databaseScalar.scalar) }

  /// `setValue(_:)` with a string of at most 10 MiB, an integer, a finite double or a boolean, and waits until the write is
  /// durable.
  @discardableResult
  public func setValue<Value: DatabaseScalar>(_ value: Value) async throws -> DatabaseReference {
    let scalar = value._databaseScalar.scalar
    return try await commit(
      made { (path, use) throws(ValidationError) in try Writes.set(scalar, at: path, use) })
  }
}

// MARK: - Incrementing

extension DatabaseReference {
  /// Adds `delta` to the number here; sets `delta` if there is no number. What
  /// `setValue(ServerValue.increment(delta))` does, and the fastest way to count.
  ///
  /// Atomic: increments from many writers never lose one another. Integers add as 64-bit integers, and as
  /// doubles if that overflows or one of them is a double.
  ///
  /// - Complexity: O(segments · log children).
  public func increment(by delta: Int) { increment(.integer(Int64(delta))) }

  /// `increment(by:)` by a double, which must be finite.
  public func increment(by delta: Double) { increment(.double(delta)) }

  /// `increment(by:)`, and calls `block` once the write is durable or has failed.
  @preconcurrency
  public func increment(
    by delta: Int,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    write(Callback(block)) { (path, use) throws(ValidationError) in
      try Writes.increment(.integer(Int64(delta)), at: path, use)
    }
  }

  /// `increment(by:)` by a double, and calls `block` once the write is durable or has failed.
  @preconcurrency
  public func increment(
    by delta: Double,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    write(Callback(block)) { (path, use) throws(ValidationError) in
      try Writes.increment(.double(delta), at: path, use)
    }
  }

  /// `increment(by:)`, and waits until the write is durable.
  @discardableResult
  public func increment(by delta: Int) async throws -> DatabaseReference {
    try await commit(
      made { (path, use) throws(ValidationError) in
        try Writes.increment(.integer(Int64(delta)), at: path, use)
      })
  }

  /// `increment(by:)` by a double, and waits until the write is durable.
  @discardableResult
  public func increment(by delta: Double) async throws
    -> DatabaseReference
  {
    try await commit(
      made { (path, use) throws(ValidationError) in
        try Writes.increment(.double(delta), at: path, use)
      })
  }
}

// MARK: - The short way

extension DatabaseReference {
  /// Sets a scalar, for which nothing is allocated.
  func set(_ scalar: Scalar) {
    guard scalar.isValid, location.count <= Limits.depth, writeFailure == nil,
      let engine = try? usable()
    else {
      return write { (path, use) throws(ValidationError) in
        try Writes.set(scalar, at: path, use)
      }
    }
    scalar.withPacked { packed in
      location.storedBytes.withUnsafeBytes { path in
        engine.submit(
          WriteView(.set, at: path, body: packed, facts: WriteFacts()), completion: nil)
      }
    }
  }

  func increment(_ delta: Number) {
    guard delta.isFinite, location.count <= Limits.depth, writeFailure == nil,
      let engine = try? usable()
    else {
      return write { (path, use) throws(ValidationError) in
        try Writes.increment(delta, at: path, use)
      }
    }
    delta.scalar.withPacked { packed in
      location.storedBytes.withUnsafeBytes { path in
        engine.submit(
          WriteView(.increment, at: path, body: packed, facts: WriteFacts()), completion: nil)
      }
    }
  }
}

extension Scalar {
  /// The scalar that a value of one of these types is; nil for others, which are not made an `Any` for it.
  init?<Value>(of value: Value) {
    if Value.self == String.self {
      self = .string(value as! String)
    } else if Value.self == Int.self {
      self = .integer(Int64(value as! Int))
    } else if Value.self == Double.self {
      self = .double(value as! Double)
    } else if Value.self == Bool.self {
      self = .bool(value as! Bool)
    } else if Value.self == Database.Value.self {
      guard let scalar = (value as! Database.Value).scalar else { return nil }
      self = scalar
    } else {
      return nil
    }
  }

  /// The scalar in a value of exactly one of these types; nil for others. Each is one comparison, where a cast
  /// would cost ten times as much.
  init?(exactly value: Any) {
    let type = type(of: value)
    // First: it alone has no `setValue` of its own, so it always comes as `Any`.
    if type == Database.Value.self {
      guard let scalar = (value as! Database.Value).scalar else { return nil }
      self = scalar
    } else if type == String.self {
      self = .string(value as! String)
    } else if type == Int.self {
      self = .integer(Int64(value as! Int))
    } else if type == Double.self {
      self = .double(value as! Double)
    } else if type == Bool.self {
      self = .bool(value as! Bool)
    } else {
      return nil
    }
  }

  /// Whether a leaf may hold it.
  var isValid: Bool {
    switch self {
    case .double(let value): value.isFinite
    case .string(let text): text.utf8.count <= Limits.stringBytes
    case .integer, .bool: true
    case .bytes: false
    }
  }
}
