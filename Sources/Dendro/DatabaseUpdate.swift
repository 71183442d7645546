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
/// stays. No path that is written may be above another one, and none may be used twice; a priority may be set above what is
/// written. The order of the calls has no effect.
/// The first thing that is wrong refuses the whole update. A value may have a `.priority`, and ``setPriority(_:_:)``
/// changes that of data that stay; a path may not end in `.priority`, as it may for `updateChildValues(_:)`.
/// Server values may stand wherever they may in `setValue(_:)`; ``ServerTimestamp`` and
/// ``Database/Value/serverIncrement(_:)-(Int)`` are those for types of your own.
///
/// Short scalars go straight into the form in which they are logged and kept, for which nothing is allocated:
/// this is the fastest way to write many values.
public struct DatabaseUpdate: ~Copyable {
  private var reader: ValueReader
  private var failure: DatabaseError?
  private let base: Path

  /// - Parameter base: the update's location.
  init(at base: Path) {
    self.base = base
    reader = ValueReader(at: base)
  }

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
    note(path) { (reader) throws(ValidationError) in
      reader.append(try reader.place.checked(scalar))
    }
  }

  /// Sets what `setValue(_:)` takes; nil removes.
  public mutating func set(_ path: String, _ value: Any?) {
    note(path) { (reader) throws(ValidationError) in
      if let value { try reader.read(value) }
    }
  }

  /// Sets a value of any `Encodable` type; a nil optional removes.
  ///
  /// - Throws: `EncodingError`, with the path to what cannot be encoded.
  public mutating func set<T: Encodable>(
    _ path: String, from value: T, encoder: Database.Encoder = Database.Encoder()
  ) throws {
    let encoded = try encoder.encoded(
      value, at: (try? Path(parsing: path)).map(base.appending) ?? base)
    note(path) { (reader) throws(ValidationError) in try reader.readWhole(encoded) }
  }

  /// Changes the priority of the data at the path, and nothing else, as `setPriority(_:)` does: to a number, a string or a
  /// ``ServerValue``; nil removes it. Has no effect if there is no data.
  public mutating func setPriority(_ path: String, _ priority: Any?) {
    note(path, .setPriority) { (reader) throws(ValidationError) in
      try reader.readPriority(priority)
    }
  }

  /// Adds `delta` to the number at the path; sets `delta` if there is no number.
  public mutating func increment(_ path: String, by delta: Int) {
    note(path, .increment) { (reader) throws(ValidationError) in
      reader.builder.append(Int64(delta))
    }
  }

  /// `increment(_:by:)` by a double, which must be finite.
  public mutating func increment(_ path: String, by delta: Double) {
    note(path, .increment) { (reader) throws(ValidationError) in
      reader.append(try reader.place.double(delta))
    }
  }

  /// Removes everything at the path and below.
  public mutating func remove(_ path: String) {
    note(path) { (_) throws(ValidationError) in }
  }

  @inline(__always)
  private mutating func note(
    _ path: String, _ kind: WriteKind = .set,
    _ read: (inout ValueReader) throws(ValidationError) -> Void
  ) {
    guard failure == nil else { return }
    do throws(ValidationError) {
      let keyCount = try reader.builder.beginEntry(path, kind)
      reader.place.outerDepth = base.count + keyCount
      try read(&reader)
      reader.builder.endEntry()
    } catch {
      // The error of a path names the path.
      failure = DatabaseError(
        error.kind == .invalidPath ? error : ValueReader.located(error, below: base, path, read))
    }
  }

  /// Lends the update, checked and in order, for the time of a call.
  consuming func lend(at path: Path, _ use: (WriteView) -> Void) throws(DatabaseError) {
    if let failure { throw failure }
    do throws(ValidationError) {
      try reader.builder.withUpdate(at: path, use)
    } catch {
      throw DatabaseError(error)
    }
  }
}

extension DatabaseReference {
  /// Makes several writes at once: all or nothing, in memory and on disk. The typed and fastest form of
  /// `updateChildValues(_:)`.
  ///
  /// Errors go to ``DatabaseOptions/errorHandler``.
  ///
  /// - Parameter body: collects the writes. If it throws, nothing is written.
  /// - Complexity: O(entries · (log entries + segments · log children)).
  public func update<E: Error>(_ body: (inout DatabaseUpdate) throws(E) -> Void) throws(E) {
    var update = DatabaseUpdate(at: location)
    try body(&update)
    do throws(DatabaseError) {
      let source = try source()
      if let writeFailure { throw writeFailure }
      try update.lend(at: location) { source.submit($0, reportingTo: owner.hub) }
    } catch {
      owner.hub.report(error)
    }
  }

  /// `update(_:)`, and waits until the writes are durable.
  ///
  /// - Throws: what `body` throws, and ``DatabaseError``.
  @discardableResult
  public func update(
    _ body: (inout DatabaseUpdate) throws -> Void
  ) async throws -> DatabaseReference {
    var update = DatabaseUpdate(at: location)
    try body(&update)
    if let writeFailure { throw writeFailure }
    var write: EncodedWrite?
    try update.lend(at: location) { write = EncodedWrite.keeping($0) }
    guard let write else { preconditionFailure("a write was lent") }
    return try await commit(write)
  }
}
