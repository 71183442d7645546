import DendroEngine
import DendroStorage
import DendroTesting

/// One situation that is named and made by hand, and what must hold in it.
struct Case: Sendable {
  let name: String
  /// What is wrong, or nil.
  let problem: @Sendable () throws -> String?

  init(_ name: String, _ problem: @escaping @Sendable () throws -> String?) {
    self.name = name
    self.problem = problem
  }
}

extension Sweep {
  /// A job for each case.
  static func cases(_ id: String, _ cases: [Case]) -> Sweep {
    Sweep(id, unit: "cases", jobs: 0..<UInt64(cases.count)) { place in
      var tally = Tally(count: 1)
      let one = cases[Int(place.job)]
      do {
        if let problem = try one.problem() { tally.fail(place, "\(one.name): \(problem)") }
      } catch {
        tally.fail(place, "\(one.name): \(error)")
      }
      return tally
    }
  }
}

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

  /// All names in the directory with what the files hold.
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

/// Whether opening is refused as damaged; otherwise what came of it.
func refusal(of disk: SimulatedDisk) -> String? {
  refusal { () throws(EngineError) in try EngineRecording.open(disk) }
}

/// Whether what opens is refused as damaged; otherwise what came of it.
func refusal(_ open: () throws(EngineError) -> Engine) -> String? {
  do throws(EngineError) {
    let engine = try open()
    return "served up to write \(engine.head.lsn)"
  } catch {
    if case .storage(.corrupt) = error { return nil }
    return "refused as \(error)"
  }
}
