/// A file system in which damaged files that are opened for reading read as they were.
final class MendedFileSystem: ForwardingFileSystem {
  let base: any FileSystem
  /// By their paths.
  private let files: [String: MendedFile]

  init(_ base: any FileSystem, _ mendings: [Mending]) {
    self.base = base
    files = mendings.reduce(into: [:]) { files, mending in
      if let file = mending.mendedFile { files[mending.path] = file }
    }
  }

  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    if mode == .read, let file = files[path] { return file }
    return try base.open(path, mode)
  }
}
