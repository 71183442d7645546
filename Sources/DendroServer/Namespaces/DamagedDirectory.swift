import Dendro
import DendroEngine
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
      // A failure may be of this moment alone, as a lack of descriptors is.
      do {
        let remains = try read()
        state = (files, remains)
        return remains
      } catch {
        return nil
      }
    }
  }

  private func read() throws -> Namespace? {
    let directory = try DatabaseDirectory.open(path, environment: .system, mode: .readOnly)
    defer { directory.close() }
    guard let present = try Salvage(directory).present() else { return nil }
    return try Namespace(
      name, Database.showing(present.state),
      losses: Losses(holes: present.holes, mayHaveOtherRules: present.isSystemInDoubt))
  }

  private var files: [String: FileVersion] {
    let names = (try? Environment.system.fileSystem.list(path)) ?? []
    // Readers come and go.
    return names.filter { !$0.hasSuffix(".lock") }.reduce(into: [:]) { files, name in
      files[name] = FileVersion(of: "\(path)/\(name)")
    }
  }
}
