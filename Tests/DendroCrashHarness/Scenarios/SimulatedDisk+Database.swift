import DendroStorage
import DendroTesting

extension SimulatedDisk {
  /// Makes a file, in calls as any program would.
  func make(_ path: String, _ bytes: [UInt8] = []) throws {
    let file = try open(path, .create)
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(SystemError) in bytes.isEmpty ? 0 : try file.write(bytes, at: 0) }
    }
    _ = try result.get()
  }

  /// Gives a file another name behind the program's back.
  func relabel(_ path: String, as other: String) {
    guard let bytes = contents(of: path) else { return }
    erase(path)
    try? make(other, bytes)
  }

  /// The segments in their order, whole paths.
  var segmentPaths: [String] { paths(".log") }
  /// The checkpoints in their order, whole paths.
  var checkpointPaths: [String] { paths(".checkpoint") }

  private func paths(_ suffix: String) -> [String] {
    names(in: EngineRecording.directory).filter { $0.hasSuffix(suffix) }
      .map { EngineRecording.directory + "/" + $0 }
  }

  /// All names in the directory with the contents of the files.
  var everything: [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for name in names(in: EngineRecording.directory) {
      files[name] = contents(of: EngineRecording.directory + "/" + name) ?? []
    }
    return files
  }
}

extension LogWriter {
  /// Appends one record with that payload, whatever it is.
  func append(_ payload: [UInt8], count: Int) throws(StorageError) {
    let result = payload.withUnsafeBytes { bytes in
      Result { () throws(StorageError) in
        try stage(bytes, firstLSN: nextLSN, count: count, baseTime: 1)
      }
    }
    try result.get()
    try write()
  }
}
