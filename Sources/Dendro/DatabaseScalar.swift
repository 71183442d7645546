import DendroTree

/// A type whose values a location holds as they are: `String`, `Int`, `Double` and `Bool`. No type of a program should
/// conform: ``DatabaseReference/setValue(from:encoder:)`` is for those.
///
/// A value of such a type needs no look at what it is while the program runs, which a value of type `Any` does.
public protocol DatabaseScalar: Sendable {
  /// The value as it is stored.
  var _databaseScalar: _StoredScalar { get }
}

/// What a location holds.
public struct _StoredScalar: Sendable {
  let scalar: Scalar

  fileprivate init(_ scalar: Scalar) { self.scalar = scalar }
}

extension String: DatabaseScalar {
  /// As it is stored.
  public var _databaseScalar: _StoredScalar { _StoredScalar(.string(self)) }
}

extension Int: DatabaseScalar {
  /// As it is stored.
  public var _databaseScalar: _StoredScalar { _StoredScalar(.integer(Int64(self))) }
}

extension Double: DatabaseScalar {
  /// As it is stored.
  public var _databaseScalar: _StoredScalar { _StoredScalar(.double(self)) }
}

extension Bool: DatabaseScalar {
  /// As it is stored.
  public var _databaseScalar: _StoredScalar { _StoredScalar(.bool(self)) }
}
