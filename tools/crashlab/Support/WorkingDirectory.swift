import Foundation

/// Where the databases are made.
struct WorkingDirectory {
  let path: String
  let isTemporary: Bool

  init(_ given: String?) throws {
    let manager = FileManager.default
    if let given {
      path = URL(fileURLWithPath: given).path
      isTemporary = false
      try manager.createDirectory(atPath: path, withIntermediateDirectories: true)
      guard try manager.contentsOfDirectory(atPath: path).isEmpty else {
        throw CocoaError(.fileWriteFileExists)
      }
    } else {
      path =
        manager.temporaryDirectory.path
        + "/crashlab-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
      isTemporary = true
      try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
  }

  func removeIfTemporary() {
    if isTemporary { try? FileManager.default.removeItem(atPath: path) }
  }
}
