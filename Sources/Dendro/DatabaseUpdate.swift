import DendroEngine
import DendroTree

/// Several writes that are made at once, all or nothing, in memory and on disk: what
/// `DatabaseReference.update(_:)` collects.
///
/// ```swift
/// root.update { update in
///   update.set("posts/\(id)/title", title)
///   update.set("user-posts/\(uid)/\(id)/title", title)
///   update.increment("users/\(uid)/postCount", by: 1)
///   update.remove("drafts/\(id)")
/// }
/// ```
///
/// Paths are relative to the location of the update. What is at each path is replaced, and what is beside it
/// stays. No path may be above another one, and none may be used twice; the order of the calls has no effect.
/// The first thing that is wrong refuses the whole update. Priorities are set by a `.priority` in a value; a path may
/// not end in `.priority`, as it may for `updateChildValues(_:)`.
///
/// Short scalars go straight into the form in which they are logged and kept, for which nothing is allocated:
/// this is the fastest way to write many values.
public struct DatabaseUpdate: ~Copyable {
  private var packed = PackedUpdate()
  private var failure: DatabaseError?
  private let depth: Int

  /// - Parameter depth: segments of the path of the update's location.
  init(depth: Int) { self.depth = depth }

  /// Sets a string of at most 10 MiB.
  public mutating func set(_ path: String, _ value: String) {
    set(path, scalar: .string(value))
  }

  /// Sets an integer.
  public mutating func set(_ path: String, _ value: Int) {
    set(path, scalar: .integer(Int64(value)))
  }

  /// Sets a double, which must be finite.
  public mutating func set(_ path: String, _ value: Double) {
    set(path, scalar: .double(value))
  }

  /// Sets a boolean.
  public mutating func set(_ path: String, _ value: Bool) {
    set(path, scalar: .bool(value))
  }

  private mutating func set(_ path: String, scalar: Scalar) {
    note(path) { (packed, reader) throws(ValidationError) in
      if !scalar.isShort { _ = try reader.checked(scalar) }
      try packed.set(path, scalar)
    }
  }

  /// Sets what `setValue(_:)` takes; nil removes. Of the server values it takes an increment as
  /// the whole value.
  public mutating func set(_ path: String, _ value: Any?) {
    note(path) { (packed, _) throws(ValidationError) in
      try Self.add(try Draft(setting: value, at: .root), at: path, to: &packed)
    }
  }

  /// Sets a value of any `Encodable` type; a nil optional removes.
  ///
  /// - Throws: `EncodingError`, with the path to what cannot be encoded.
  public mutating func set<T: Encodable>(
    _ path: String, from value: T, encoder: Database.Encoder = Database.Encoder()
  ) throws {
    let encoded = try encoder.encoded(value)
    note(path) { (packed, _) throws(ValidationError) in
      try Self.add(try Draft(setting: encoded, at: .root), at: path, to: &packed)
    }
  }

  private static func add(
    _ draft: Draft, at path: String, to packed: inout PackedUpdate
  ) throws(ValidationError) {
    guard draft.deferred.isEmpty else {
      throw ValidationError(
        .invalidData, "the value contains a server value; updateChildValues(_:) can write it")
    }
    switch draft.write {
    case .set(_, let node): try packed.set(path, node)
    case .increment(_, let delta): try packed.increment(path, by: delta)
    case .remove: try packed.remove(path)
    case .setPriority, .update: preconditionFailure("a set is no such write")
    }
  }

  /// Adds `delta` to the number at the path; sets `delta` where there is no number.
  public mutating func increment(_ path: String, by delta: Int) {
    note(path) { (packed, reader) throws(ValidationError) in
      try packed.increment(path, by: .integer(Int64(delta)))
    }
  }

  /// `increment(_:by:)` by a double, which must be finite.
  public mutating func increment(_ path: String, by delta: Double) {
    note(path) { (packed, reader) throws(ValidationError) in
      _ = try reader.double(delta)
      try packed.increment(path, by: .double(delta))
    }
  }

  /// Removes everything at the path and below.
  public mutating func remove(_ path: String) {
    note(path) { (packed, reader) throws(ValidationError) in try packed.remove(path) }
  }

  @inline(__always)
  private mutating func note(
    _ path: String,
    _ change: (inout PackedUpdate, inout ValueReader) throws(ValidationError) -> Void
  ) {
    guard failure == nil else { return }
    var reader = ValueReader(outerDepth: depth)
    do throws(ValidationError) {
      try change(&packed, &reader)
    } catch {
      // The error of a path names the path.
      let place = error.kind == .invalidPath ? "" : "at \"\(path)\": "
      failure = DatabaseError(ValidationError(error.kind, place + error.message))
    }
  }

  /// The update, checked and in order.
  consuming func finished(at path: Path) throws(DatabaseError) -> PackedUpdate {
    if let failure { throw failure }
    var packed = packed
    do throws(ValidationError) {
      try packed.finish(at: path)
    } catch {
      throw DatabaseError(error)
    }
    return packed
  }
}

extension DatabaseReference {
  /// Makes several writes at once: all or nothing, in memory and on disk. The typed and fastest form of
  /// `updateChildValues(_:)`.
  ///
  /// Errors go to ``DatabaseOptions/errorHandler``.
  ///
  /// - Parameter body: collects the writes. Where it throws, nothing is written.
  /// - Complexity: O(entries · (log entries + segments · log children)).
  public func update<E: Error>(_ body: (inout DatabaseUpdate) throws(E) -> Void) throws(E) {
    var update = DatabaseUpdate(depth: path.count)
    try body(&update)
    do throws(DatabaseError) {
      let engine = try usable()
      engine.submit(try finished(update), at: path, completion: nil)
    } catch {
      store.hub.report(error)
    }
  }

  /// `update(_:)`, and waits until the writes are durable.
  ///
  /// - Throws: what `body` throws, and ``DatabaseError``.
  @discardableResult
  public func update(
    _ body: (inout DatabaseUpdate) throws -> Void
  ) async throws -> DatabaseReference {
    var update = DatabaseUpdate(depth: path.count)
    try body(&update)
    return try await commit(try finished(update))
  }

  private func finished(
    _ update: consuming DatabaseUpdate
  ) throws(DatabaseError) -> PackedUpdate {
    if let writeFailure { throw writeFailure }
    return try update.finished(at: path)
  }
}
