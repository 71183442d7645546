import DendroPlatform
import DendroStorage
import Foundation

extension CopyFile {
  /// Where the database is in a server's directory.
  static func dataDirectory(in directory: String) -> String { directory + "/data" }

  /// Moves the database beside itself, so that the next opening begins a copy anew. Nothing of it is removed.
  ///
  /// - Parameter databaseID: whose copy the directory gets.
  /// - Returns: where the database is now.
  func setAside(_ databaseID: DatabaseID) throws(ClusterError) -> String {
    let directory = String(path.dropLast("/cluster".count))
    let data = Self.dataDirectory(in: directory)
    let place = "\(directory)/set-aside-\(Int64(Date().timeIntervalSince1970 * 1000))"
    guard rename(data, place) == 0 else {
      throw .files("move \(data) to \(place): \(String(cString: strerror(errno)))")
    }
    try claim(databaseID)
    return place
  }
}
