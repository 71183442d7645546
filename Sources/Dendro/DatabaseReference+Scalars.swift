import DendroEngine
import DendroTree

// The compiler takes these where it knows the type of a value: nothing has to be found out about it when the
// program runs. They do what the forms with `Any?` do.

// MARK: - Setting scalars

extension DatabaseReference {
  /// `setValue(_:)` with a string of at most 10 MiB.
  public func setValue(_ value: String) { set(.string(value)) }

  /// `setValue(_:)` with an integer.
  public func setValue(_ value: Int) { set(.integer(Int64(value))) }

  /// `setValue(_:)` with a double, which must be finite.
  public func setValue(_ value: Double) { set(.double(value)) }

  /// `setValue(_:)` with a boolean.
  public func setValue(_ value: Bool) { set(.bool(value)) }

  /// `setValue(_:)` with a string of at most 10 MiB, and waits until the write is durable.
  @discardableResult
  public func setValue(_ value: String) async throws -> DatabaseReference {
    try await commit(draft { path throws(ValidationError) in try Draft(setting: value, at: path) })
  }

  /// `setValue(_:)` with an integer, and waits until the write is durable.
  @discardableResult
  public func setValue(_ value: Int) async throws -> DatabaseReference {
    try await commit(draft { Draft(setting: .integer(Int64(value)), at: $0) })
  }

  /// `setValue(_:)` with a double, which must be finite, and waits until the write is durable.
  @discardableResult
  public func setValue(_ value: Double) async throws -> DatabaseReference {
    try await commit(draft { path throws(ValidationError) in try Draft(setting: value, at: path) })
  }

  /// `setValue(_:)` with a boolean, and waits until the write is durable.
  @discardableResult
  public func setValue(_ value: Bool) async throws -> DatabaseReference {
    try await commit(draft { Draft(setting: .bool(value), at: $0) })
  }
}

// MARK: - Incrementing

extension DatabaseReference {
  /// Adds `delta` to the number here; sets `delta` where there is no number. What
  /// `setValue(ServerValue.increment(delta))` does, and the fastest way to count.
  ///
  /// Atomic: increments from many writers never lose one another. Integers add as 64-bit integers, and as
  /// doubles where that overflows or one of them is a double.
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
    write(Callback(block)) { Draft(.increment($0, .integer(Int64(delta)))) }
  }

  /// `increment(by:)` by a double, and calls `block` once the write is durable or has failed.
  @preconcurrency
  public func increment(
    by delta: Double,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    write(Callback(block)) { Draft(.increment($0, .double(delta))) }
  }

  /// `increment(by:)`, and waits until the write is durable.
  @discardableResult
  public func increment(by delta: Int) async throws -> DatabaseReference {
    try await commit(draft { Draft(.increment($0, .integer(Int64(delta)))) })
  }

  /// `increment(by:)` by a double, and waits until the write is durable.
  @discardableResult
  public func increment(by delta: Double) async throws
    -> DatabaseReference
  {
    try await commit(draft { Draft(.increment($0, .double(delta))) })
  }
}

// MARK: - The short way

extension DatabaseReference {
  /// Sets a scalar. Where it is short and valid, the engine gets its packed form, for which nothing is
  /// allocated.
  func set(_ scalar: Scalar) {
    guard writeFailure == nil, let engine = try? usable(), scalar.isShort else {
      return write { path throws(ValidationError) in try Draft(validating: scalar, at: path) }
    }
    if scalar.withPacked({ engine.submit(.set($0), at: path) }) { return }
    engine.submit(Draft(setting: scalar, at: path), completion: nil)
  }

  private func increment(_ delta: Number) {
    guard writeFailure == nil, let engine = try? usable(), delta.isFinite else {
      return write { Draft(.increment($0, delta)) }
    }
    if engine.submit(.increment(delta), at: path) { return }
    engine.submit(Draft(.increment(path, delta)), completion: nil)
  }
}

extension Scalar {
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

  /// Whether it is valid, and short enough for the short way.
  var isShort: Bool {
    if case .double(let value) = self, !value.isFinite { return false }
    return PackedScalar.byteCount(self) <= LeafEdit.byteCountMax
  }
}

extension Draft {
  fileprivate init(validating scalar: Scalar, at path: Path) throws(ValidationError) {
    switch scalar {
    case .string(let text): try self.init(setting: text, at: path)
    case .double(let number): try self.init(setting: number, at: path)
    case .integer, .bool: self.init(setting: scalar, at: path)
    }
  }

  fileprivate init(setting text: String, at path: Path) throws(ValidationError) {
    self.init(.set(path, try ValueReader(outerDepth: 0).string(text)))
  }

  fileprivate init(setting number: Double, at path: Path) throws(ValidationError) {
    self.init(setting: try ValueReader(outerDepth: 0).double(number), at: path)
  }

  fileprivate init(setting scalar: Scalar, at path: Path) { self.init(.set(path, Node(scalar))) }
}
