import Foundation

/// Where the databases are made.
struct WorkingDirectory {
  struct Problem: Error, CustomStringConvertible { var description: String }

  let path: String
  let isTemporary: Bool

  init(_ given: String?) throws {
    let manager = FileManager.default
    if let given {
      path = URL(fileURLWithPath: given).path
      isTemporary = false
      do {
        try manager.createDirectory(atPath: path, withIntermediateDirectories: true)
      } catch {
        throw Problem(description: "\(path) cannot be made: \(error.localizedDescription)")
      }
      guard try manager.contentsOfDirectory(atPath: path).isEmpty else {
        throw Problem(description: "\(path) is not empty")
      }
      guard manager.isWritableFile(atPath: path) else {
        throw Problem(description: "\(path) cannot be written to")
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
