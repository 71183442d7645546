/// A file that appears complete: written to a temporary name, synchronized, and renamed into its place.
struct NewFile {
  let file: any File
  /// Where it is written.
  let temporaryPath: String
  private let path: String
  private let directory: DatabaseDirectory

  /// Begins the file, in place of an unfinished one that an earlier attempt left.
  init(_ path: String, in directory: DatabaseDirectory) throws(StorageError) {
    self.path = path
    self.directory = directory
    temporaryPath = path + FileName.temporarySuffix
    try directory.fileSystem.remove(at: temporaryPath)
    file = try directory.fileSystem.open(at: temporaryPath, .create)
  }

  /// Gives the file its name, in place of an older file there; durable with its name when it returns.
  ///
  /// Parity of the older file is removed before, so that none is ever of other bytes than those of its file.
  func publish() throws(StorageError) {
    try file.synchronize(path: temporaryPath)
    // Checked last, before anything changes that other openers see.
    try directory.checkOwnership()
    let name = String(path.dropFirst(directory.path.count + 1))
    if try directory.removeParity(of: name) { try directory.synchronize() }
    try directory.fileSystem.rename(from: temporaryPath, to: path)
    try directory.synchronize()
  }

  /// Removes what was written, if the disk allows it; otherwise the next opener does.
  func discard() { try? directory.fileSystem.remove(at: temporaryPath) }
}
