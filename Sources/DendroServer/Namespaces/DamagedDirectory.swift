import Dendro
import DendroEngine
import DendroPlatform
import DendroStorage
import Synchronization

/// What can still be read of a database that cannot be opened because it is damaged.
///
/// The files are read again only after they have changed.
final class DamagedDirectory: Sendable {
  private let name: String
  private let path: String
  private let state = Mutex<(files: [String: FileVersion], remains: Namespace?)?>(nil)

  /// - Parameters:
  ///   - name: of the namespace.
  ///   - path: of the database's directory; absolute.
  init(_ name: String, at path: String) {
    self.name = name
    self.path = path
  }

  /// The data that is left; nil if no location is surely as it was, or the files cannot be read.
  ///
  /// - Complexity: O(bytes of the directory) for the first call. The lock is held meanwhile.
  var remains: Namespace? {
    let files = files
    return state.withLock { state in
      if let state, state.files == files { return state.remains }
      let remains = try? read()
      state = (files, remains)
      return remains
    }
  }

  private func read() throws -> Namespace? {
    let directory = try DatabaseDirectory.open(path, environment: .system, mode: .readOnly)
    defer { directory.close() }
    guard let (state, holes) = try Salvage(directory).present() else { return nil }
    return try Namespace(name, Database.showing(state), losses: Losses(holes: holes))
  }

  private var files: [String: FileVersion] {
    guard let stream = opendir(path) else { return [:] }
    defer { closedir(stream) }
    var files: [String: FileVersion] = [:]
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { bytes in
        bytes.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      // Readers come and go.
      if name.hasSuffix(".log") || name.hasSuffix(".checkpoint") {
        files[name] = FileVersion(of: "\(path)/\(name)")
      }
    }
    return files
  }
}
