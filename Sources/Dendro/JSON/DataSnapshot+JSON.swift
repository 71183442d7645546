import DendroPlatform
import DendroTree
public import Foundation

extension DataSnapshot {
  /// The data as JSON; `null` if there is nothing.
  ///
  /// ```swift
  /// print(snapshot.json(.pretty))
  /// ```
  ///
  /// Children come in the order of their keys, whatever the order of the query. They make an array where those of
  /// ``value`` do. Integers have all their digits, doubles the shortest that mean them.
  ///
  /// - Complexity: O(size of the data).
  public func json(_ format: Database.JSONFormat = []) -> String {
    JSONWriter.string(node, style: format.style)
  }

  /// Writes the data as JSON to a file, whose text is never in memory as a whole; a file that is there is replaced. The
  /// file appears complete and synchronized, or not at all.
  ///
  /// It waits for the disk: call it where a thread may wait.
  ///
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/inputOutput`` or ``DatabaseError/Code/diskFull`` if the file cannot
  ///   be written, ``DatabaseError/Code/invalidArgument`` if `url` is no file URL.
  public func writeJSON(to url: URL, _ format: Database.JSONFormat = []) throws {
    let path = try Database.path(of: url)
    let partial = path + "." + UUID().uuidString + ".partial"
    do {
      let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
      guard descriptor >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
      let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      try JSONWriter.write(node, style: format.style) { bytes in
        try file.write(contentsOf: bytes)
      }
      try file.write(contentsOf: Data("\n".utf8))
      try file.synchronize()
      try file.close()
      guard rename(partial, path) == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    } catch {
      unlink(partial)
      throw DatabaseError(error, "write", path)
    }
  }
}
