import DendroEngine
import DendroTree

/// The data of one moment, lent to the block of ``Database/read(_:)``, or what is at one location in it.
///
/// Reading from it takes no lock, makes no snapshot and no reference, and decodes only what is asked for. It
/// cannot be kept: what the block needs later it returns, or reads as a ``DataSnapshot``.
public struct DatabaseView: ~Copyable {
  private let node: NodeView

  fileprivate init(_ node: NodeView) { self.node = node }

  // MARK: What is here

  /// Whether there is anything here.
  public var exists: Bool { !node.isEmpty }

  /// How many children there are; 0 for a scalar.
  public var childrenCount: Int { node.childCount }

  /// The integer here, also where it is stored as a double of the same value; else nil.
  public var int: Int? { node.scalar?.int }

  /// The number here; else nil. Integers beyond 2^53 are rounded to the nearest double.
  public var double: Double? { node.scalar?.double }

  /// The string here; else nil.
  public var string: String? { node.scalar?.string }

  /// The boolean here; else nil. Numbers are no booleans.
  public var bool: Bool? { node.scalar?.bool }

  // MARK: Below

  /// Whether there is anything at a path below.
  ///
  /// - Parameter path: as for ``DatabaseReference/child(_:)``; so for all methods.
  /// - Throws: ``DatabaseError`` for a path that cannot be; so do all methods that take one.
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
    try view(at: path).scalar?.string
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
  /// - Throws: what `body` throws, and ``DatabaseError`` for a path that cannot be.
  public func child<R>(
    _ path: String, _ body: (borrowing DatabaseView) throws -> R
  ) throws -> R {
    try body(DatabaseView(view(at: path)))
  }

  /// Calls `body` with the key and the data of each child, in the order of keys.
  ///
  /// - Throws: what `body` throws; the other children are left out then.
  /// - Complexity: O(children), and what `body` does.
  public func forEachChild<E: Error>(
    _ body: (String, borrowing DatabaseView) throws(E) -> Void
  ) throws(E) {
    try node.forEachChild { (key, child) throws(E) in
      try body(key.string, DatabaseView(child))
      return true
    }
  }

  private func view(at path: String) throws(DatabaseError) -> NodeView {
    do throws(ValidationError) {
      try Path.checkNotEmpty(path)
      return try node.view(parsing: path)
    } catch {
      throw DatabaseError(error)
    }
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
  /// - Throws: what `body` throws, and ``DatabaseError`` where the database is closed or data cannot be read
  ///   from its file.
  /// - Complexity: O(1), and what `body` does.
  public func read<R>(_ body: (borrowing DatabaseView) throws -> R) throws -> R {
    do {
      let head = try usable().node(at: .root)
      return try head.reading { root in try root.withView { try body(DatabaseView($0)) } }
    } catch let error as EngineError {
      throw DatabaseError(error)
    }
  }
}
