import DendroEngine
import DendroTree

/// The data of one moment, lent to the block of ``Database/read(_:)``, or what is at one location in it.
///
/// Reading from it takes no lock, makes no snapshot and no reference, and decodes only what is asked for. It
/// cannot be kept: what the block needs later it returns, or reads as a ``DataSnapshot``.
///
/// Data that is still in the checkpoint is read from its file when it is asked for, on the calling thread. If
/// that fails, nothing is shown as missing that is not:
///
/// | what is read | if the file cannot be read |
/// | --- | --- |
/// | what is here: ``exists``, ``childrenCount``, ``int``, ``double``, ``string``, ``bool`` | never fails: it was read before the block got the view |
/// | anything at a path, and ``child(_:_:)`` | throws ``DatabaseError`` at once |
/// | ``forEachChild(_:)`` | ends before the first child that cannot be read; ``Database/read(_:)`` throws in the end |
///
/// So a block that acts on having seen all children, outside of the database, does it after ``Database/read(_:)`` has
/// returned. Once anything could not be read, all later methods that throw do so, and so does
/// ``Database/read(_:)``, even if the block has caught the error.
public struct DatabaseView: ~Copyable {
  private let node: NodeView
  private let check: ReadingCheck

  fileprivate init(_ node: NodeView, _ check: ReadingCheck) {
    self.node = node
    self.check = check
  }

  // MARK: What is here

  /// Whether there is anything here.
  public var exists: Bool { !node.isEmpty }

  /// How many children there are; 0 for a scalar.
  public var childrenCount: Int { node.childCount }

  /// The integer here, also if it is stored as a double of the same value; else nil.
  public var int: Int? { node.scalar?.int }

  /// The number here; else nil. Integers beyond 2^53 are rounded to the nearest double.
  public var double: Double? { node.scalar?.double }

  /// The string here; else nil.
  public var string: String? { node.string }

  /// The boolean here; else nil. Numbers are no booleans.
  public var bool: Bool? { node.scalar?.bool }

  // MARK: Below

  /// Whether there is anything at a path below.
  ///
  /// - Parameter path: as for ``DatabaseReference/child(_:)``; so for all methods.
  /// - Throws: ``DatabaseError`` for a path that cannot be, and if data on the way cannot be read from its
  ///   file; so do all methods that take one.
  /// - Complexity: O(segments · log children), as all of them.
  public func exists(at path: String) throws(DatabaseError) -> Bool {
    try !view(at: path).isEmpty
  }

  /// How many children there are at a path below.
  public func childrenCount(at path: String) throws(DatabaseError) -> Int {
    try view(at: path).childCount
  }

  /// ``int`` at a path below.
  public func int(at path: String) throws(DatabaseError) -> Int? { try view(at: path).scalar?.int }

  /// ``double`` at a path below.
  public func double(at path: String) throws(DatabaseError) -> Double? {
    try view(at: path).scalar?.double
  }

  /// ``string`` at a path below.
  public func string(at path: String) throws(DatabaseError) -> String? {
    try view(at: path).string
  }

  /// ``bool`` at a path below.
  public func bool(at path: String) throws(DatabaseError) -> Bool? {
    try view(at: path).scalar?.bool
  }

  /// Calls `body` with what is at a path below, so that its fields need not be looked for from here.
  ///
  /// ```swift
  /// let title = try database.read { view in
  ///   try view.child("posts/rings") { post in
  ///     "\(try post.string(at: "title") ?? "") by \(try post.string(at: "author") ?? "")"
  ///   }
  /// }
  /// ```
  ///
  /// - Throws: what `body` throws, and ``DatabaseError`` for a path that cannot be, and if data cannot be
  ///   read from its file; `body` is not called then.
  public func child<R>(
    _ path: String, _ body: (borrowing DatabaseView) throws -> R
  ) throws -> R {
    try body(DatabaseView(view(at: path), check))
  }

  /// Calls `body` with the key and the data of each child, in the order of keys.
  ///
  /// If a child cannot be read from its file, it and those behind it are left out, and ``Database/read(_:)``
  /// throws ``DatabaseError`` once its block has returned.
  ///
  /// - Parameter body: called once for each child.
  /// - Throws: what `body` throws; the other children are left out then.
  /// - Complexity: O(children), and what `body` does.
  public func forEachChild<E: Error>(
    _ body: (String, borrowing DatabaseView) throws(E) -> Void
  ) throws(E) {
    try node.forEachChild { (key, child) throws(E) in
      // Once a page is missing, what comes next is not what comes next in the data.
      if check.failure != nil { return false }
      try body(key.string, DatabaseView(child, check))
      return true
    }
  }

  private func view(at path: String) throws(DatabaseError) -> NodeView {
    let found: NodeView
    do throws(ValidationError) {
      try Path.checkNotEmpty(path)
      found = try node.view(parsing: path)
    } catch {
      throw DatabaseError(error)
    }
    if let failure = check.failure { throw DatabaseError(failure) }
    return found
  }
}

extension Database {
  /// Calls `body` with the data of this moment: every write that was admitted before shows, and none that
  /// comes later.
  ///
  /// Nothing is made for a value that is read: for many of them, of one moment. Writers and other readers go
  /// on meanwhile. `.info` is not part of it.
  ///
  /// ```swift
  /// let stars = try database.read { view in
  ///   try view.int(at: "posts/rings/stars") ?? 0
  /// }
  /// ```
  ///
  /// - Parameter body: called once, at once, on the calling thread.
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws, and ``DatabaseError`` if the database is closed, or data that the block
  ///   asked for cannot be read from its file: instead of what the block has returned or thrown.
  /// - Complexity: O(1), and what `body` does.
  public func read<R>(_ body: (borrowing DatabaseView) throws -> R) throws -> R {
    do {
      return try usable().reading { view, check in try body(DatabaseView(view, check)) }
    } catch let error as EngineError {
      throw DatabaseError(error)
    }
  }
}
