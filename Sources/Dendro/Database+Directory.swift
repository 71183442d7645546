import DendroEngine
import DendroStorage
import Foundation

extension Database {
  /// The absolute path of a directory.
  ///
  /// - Throws: ``DatabaseError/Code/invalidArgument`` if it cannot be a path;
  ///   ``DatabaseError/Code/inputOutput`` if it is relative and the working directory was removed.
  static func absolute(_ path: String) throws(DatabaseError) -> String {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw DatabaseError(
        .invalidArgument, "InvalidArgumentError",
        "the path of a directory must not be empty or contain a NUL character")
    }
    do throws(StorageError) {
      return try WorkingDirectory.absolute(path)
    } catch {
      throw DatabaseError(error)
    }
  }

  /// The path that a file URL of this machine names.
  ///
  /// - Throws: ``DatabaseError/Code/invalidArgument`` for any other URL.
  static func path(of url: URL) throws(DatabaseError) -> String {
    guard url.isFileURL, ["", "localhost"].contains(url.host ?? "") else {
      throw DatabaseError(
        .invalidArgument, "InvalidArgumentError",
        "\(url.absoluteString) is no file URL of this machine, as file:///var/data is")
    }
    return url.path
  }
}
