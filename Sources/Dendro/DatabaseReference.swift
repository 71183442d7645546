import DendroEngine
import DendroTree
import Foundation

/// A location: a path in a database. Making one reads and writes nothing.
///
/// Any thread may use it; it never changes. It keeps its database open.
public final class DatabaseReference: DatabaseQuery, @unchecked Sendable {
  /// The database.
  public var database: Database { owner }

  /// The last segment of the path; nil at the root.
  public var key: String? { location.last?.string }

  /// Where it is, from the root on: `/users/ada`; `/` at the root. `reference(withPath:)` makes the same reference of it.
  ///
  /// - Complexity: O(length).
  public var path: String { location.description }

  /// The location above; nil at the root.
  public var parent: DatabaseReference? {
    location.parent.map { DatabaseReference(owner, $0, failure: failure) }
  }

  /// The root of the database.
  public var root: DatabaseReference { DatabaseReference(owner, .root) }

  /// Where it is: the path, percent-encoded, behind the database's address.
  public var url: String {
    var url = owner.settings.address
    for key in location.keys {
      url += "/"
      for byte in key.string.utf8 {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
          UInt8(ascii: "~"):
          url.unicodeScalars.append(Unicode.Scalar(byte))
        default:
          url += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }
      }
    }
    return url
  }

  /// ``url``.
  public override func description() -> String { url }

  /// The location itself: a reference has no query parameters.
  public override var ref: DatabaseReference { self }

  /// The location at `pathString` below this one.
  ///
  /// - Parameter pathString: segments between slashes, such as `users/ada`; empty segments are dropped,
  ///   so that "/" is this location. Not empty, and without `. # $ [ ]`, control characters and
  ///   segments over 768 bytes: otherwise the reference carries the error to every operation on it.
  /// - Complexity: O(length).
  public func child(_ pathString: String) -> DatabaseReference {
    do throws(ValidationError) {
      return appending(try Path(child: pathString))
    } catch {
      return failing(DatabaseError(error))
    }
  }

  /// A child with a new key: 20 characters that sort in the order of their generation. The key is unique
  /// without coordination. Writes nothing.
  ///
  /// Keys made by one process ascend even if the clock steps back.
  public func childByAutoId() -> DatabaseReference {
    if location.isInfo { return failing(.notWritable(location)) }
    if owner.hub.isForked { return failing(DatabaseError(EngineError.forked)) }
    do throws(ValidationError) {
      return appending(try Key(owner.nextPushID()))
    } catch {
      return failing(DatabaseError(error))
    }
  }

  func appending(_ relative: consuming Path) -> DatabaseReference {
    if relative.isRoot { return self }
    return DatabaseReference(
      owner, location.isRoot ? relative : location.appending(relative), failure: failure)
  }

  func appending(_ key: Key) -> DatabaseReference {
    DatabaseReference(owner, location.appending(key), failure: failure)
  }

  /// This location with an error that every operation gets; the first one stays.
  func failing(_ error: DatabaseError) -> DatabaseReference {
    failure == nil ? DatabaseReference(owner, location, failure: error) : self
  }
}
