extension DatabaseDirectory {
  /// Writes the parity of a file beside it, in place of an older one. Nothing is written to the file meanwhile.
  ///
  /// - Parameter name: of a segment or a checkpoint.
  /// - Returns: how many bytes it has.
  /// - Throws: `.corrupt` if bytes of which the present parity was made are not as they were. That stays then.
  /// - Complexity: O(bytes of the file); memory for two runs of blocks and for the checksums, a 500th of the file.
  @discardableResult
  package func writeParity(of name: String) throws(StorageError) -> UInt64 {
    try checkWritable()
    return try ParityWriter(of: name, in: self).write(in: self)
  }

  /// Writes the parity of each of the files that has none, or an older one.
  ///
  /// - Returns: how many bytes were written.
  package func completeParity(of names: [String]) throws(StorageError) -> UInt64 {
    var byteCount: UInt64 = 0
    for name in names {
      if try !hasCurrentParity(of: name) { byteCount += try writeParity(of: name) }
    }
    return byteCount
  }

  /// Whether a file has parity that covers all of it. Of both only the first bytes are read.
  package func hasCurrentParity(of name: String) throws(StorageError) -> Bool {
    let parityPath = path + "/" + FileName.parityName(of: name)
    let header: ParityHeader
    do throws(StorageError) {
      header = try ParityFile.header(parityPath, fileSystem)
    } catch {
      switch error {
      case .corrupt, .io(_, _, _, .noSuchFile): return false
      default: throw error
      }
    }
    let path = path + "/" + name
    let file = try fileSystem.open(at: path, .read)
    let byteCount = try file.size(path: path)
    let head = try ParityHeader.head(of: file, path: path)
    return header.layout.coveredByteCount == byteCount && header.head == head
  }

  /// Removes the parity of a file. Idempotent.
  ///
  /// - Returns: whether there was any.
  @discardableResult
  func removeParity(of name: String) throws(StorageError) -> Bool {
    let path = path + "/" + FileName.parityName(of: name)
    do throws(StorageError) {
      try uninterrupted("remove", path) { () throws(SystemError) in try fileSystem.remove(path) }
      return true
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return false }
      throw error
    }
  }

  /// Removes parity whose file is gone, as a power loss leaves it.
  package func removeOrphanedParity() throws(StorageError) {
    for name in try contents().orphanedParityFiles {
      try fileSystem.remove(at: path + "/" + name)
    }
  }

  /// The files that are missing, as their parity shows; see ``Contents/missingFiles``.
  ///
  /// - Returns: a problem for each. A writer that removes files meanwhile causes none.
  package func missingFileProblems() throws(StorageError) -> [LogCursor.Problem] {
    let missing = try contents().missingFiles
    if missing.isEmpty { return [] }
    let still = Set(try contents().missingFiles)
    return missing.filter { still.contains($0) }.map { name in
      LogCursor.Problem(
        missing: name, from: path, reason: "its parity, \(FileName.parityName(of: name)), is there")
    }
  }

  /// Compares each file that has parity with it.
  ///
  /// - Throws: `.io`.
  /// - Complexity: O(bytes of these files).
  package func mendings() throws(StorageError) -> [Mending] {
    let contents = try contents()
    var mendings: [Mending] = []
    let parityFiles = Set(contents.parityFiles)
    for name in contents.fileNames where parityFiles.contains(FileName.parityName(of: name)) {
      do throws(StorageError) {
        mendings.append(try Mending(of: name, in: self))
      } catch {
        // The writer has removed it meanwhile.
        if case .io(_, _, _, .noSuchFile) = error { continue }
        throw error
      }
    }
    return mendings
  }

  /// Opens a directory for reading. If its last segment has parity, as in an archive, that reads as it was: what is missing or
  /// damaged at its end would look like what a crash leaves.
  ///
  /// - Throws: as `open`; `.corrupt` if parity cannot give back what is damaged or missing there.
  /// - Complexity: O(bytes of that segment).
  package static func openMended(
    _ path: String, environment: Environment
  ) throws(StorageError) -> DatabaseDirectory {
    let directory = try open(path, environment: environment, mode: .readOnly)
    do throws(StorageError) {
      let contents = try directory.contents()
      guard let name = contents.segments.last?.fileName,
        contents.parityFiles.contains(FileName.parityName(of: name))
      else { return directory }
      let mending: Mending
      do throws(StorageError) {
        mending = try Mending(of: name, in: directory)
      } catch {
        // A backup that goes on writes it anew, or it is not for this reader.
        guard case .io(_, _, _, let cause) = error,
          cause == .noSuchFile || cause == .permissionDenied
        else { throw error }
        return directory
      }
      if let offset = mending.unmendedEnd {
        throw .corrupt(
          path: mending.path, offset: offset, expected: "the bytes that its parity knows",
          found: "others, or the end of the file")
      }
      let mended = try directory.mended(by: [mending])
      if mended !== directory { directory.close() }
      return mended
    } catch {
      directory.close()
      throw error
    }
  }

  /// The directory as its parity mends it, for reading: the damaged blocks of its files read as they were.
  ///
  /// - Returns: the directory itself if nothing is mended.
  package func mended(by mendings: [Mending]) throws(StorageError) -> DatabaseDirectory {
    guard mendings.contains(where: { $0.mendedFile != nil }) else { return self }
    let environment = Environment(
      fileSystem: MendedFileSystem(fileSystem, mendings), clock: environment.clock,
      randomness: environment.randomness)
    return try DatabaseDirectory.open(path, environment: environment, mode: .readOnly)
  }
}
