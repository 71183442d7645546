import DendroStorage
import DendroTesting

/// Simulated disks with files in them, and the directory that all targets use.
enum FuzzDisk {
  static let directory = "/database"

  /// - `files`: names and contents; of equal names the first counts.
  static func make(_ files: [(name: String, bytes: [UInt8])]) throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 1)
    try disk.createDirectory(directory)
    for file in files where !disk.exists("\(directory)/\(file.name)") {
      try make("\(directory)/\(file.name)", file.bytes, on: disk)
    }
    return disk
  }

  static func make(_ path: String, _ bytes: [UInt8], on disk: SimulatedDisk) throws {
    let file = try disk.open(path, .create)
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(SystemError) in bytes.isEmpty ? 0 : try file.write(bytes, at: 0) }
    }
    _ = try result.get()
  }

  static func segment(_ lsn: UInt64) -> String { padded(lsn) + ".log" }
  static func checkpoint(_ lsn: UInt64) -> String { padded(lsn) + ".checkpoint" }

  private static func padded(_ number: UInt64) -> String {
    let digits = String(number)
    return String(repeating: "0", count: 20 - digits.utf8.count) + digits
  }

  static func open(_ disk: SimulatedDisk) -> DatabaseDirectory? {
    attempt { () throws(StorageError) in
      try DatabaseDirectory.open(directory, environment: disk.environment, mode: .readOnly)
    }
  }
}
