/// What rules read: a location of a tree, and what is below it.
///
/// Rules ask for little, so a JSON document, a cache or a database can stand behind it. A value has to stay
/// the same while a verdict is made. ``JSONTree`` is a tree that is ready to use.
///
/// ```swift
/// struct Cached: RuleData {
///   let cache: Cache
///   let path: [String]
///
///   var exists: Bool { cache.contains(path) }
///   var scalar: RuleScalar? { cache.number(at: path).map(RuleScalar.double) }
///   var priority: RuleScalar? { nil }
///   func child(_ key: String) -> Cached { Cached(cache: cache, path: path + [key]) }
///   func forEachChild(_ body: (String, Cached) -> Bool) {
///     for key in cache.keys(at: path) where !body(key, child(key)) { return }
///   }
/// }
/// ```
public protocol RuleData {
  /// Whether there is anything: a leaf, or a location with children.
  var exists: Bool { get }

  /// The value of a leaf; nil for anything else.
  var scalar: RuleScalar? { get }

  /// The priority, which is a number or a string; nil if there is none.
  var priority: RuleScalar? { get }

  /// The child at a key. It may be one that does not exist.
  ///
  /// - Parameter key: one key, without slashes.
  func child(_ key: String) -> Self

  /// Calls `body` with each child that exists, until it returns false.
  func forEachChild(_ body: (_ key: String, _ child: Self) -> Bool)
}
