import DendroEngine
import DendroStorage
import DendroTesting

/// Whether mending does its work: a test of the fuzzer's own.
package enum MendingCheck {
  /// Wipes every checksum of right databases, and what files repeat of each other, mends them, and opens
  /// them again.
  ///
  /// - Returns: how many databases.
  /// - Throws: what is not as before.
  package static func run() throws -> Int {
    var count = 0
    for files in try SeedDatabases.all() {
      let expected = try open(files)
      var archive = FileArchive(files, isMended: true)
      for index in archive.files.indices where archive.files[index].kind != .lock {
        archive.files[index].bytes = wiped(
          archive.files[index].bytes, isLog: archive.files[index].kind == .segment)
      }
      let wipedFiles = FileArchive(archive.files, isMended: false).contents
      try require(
        (try? open(wipedFiles)) == nil, "without its checksums it opens as well: nothing was wiped")
      let mended = try archive.encoded.withUnsafeBytes { try open(FileArchive($0).contents) }
      try require(
        mended.head.root == expected.head.root && mended.head.lsn == expected.head.lsn,
        "mended, it ends with write \(mended.head.lsn), not \(expected.head.lsn)")
      count += 1
    }
    return count
  }

  private static func open(_ files: [(name: String, bytes: [UInt8])]) throws -> Engine {
    let disk = try FuzzDisk.make(files)
    return try Engine.open(
      at: FuzzDisk.directory, options: fuzzOptions, environment: disk.environment, mode: .readOnly)
  }

  private static func wiped(_ bytes: [UInt8], isLog: Bool) -> [UInt8] {
    var bytes = bytes
    bytes.set(UInt32(0), at: 60)
    if isLog {
      for record in Mending.records(in: bytes) {
        bytes.replaceSubrange(
          record.checksums, with: repeatElement(0, count: record.checksums.count))
      }
    } else {
      bytes.set(UInt64(0), at: bytes.count - 8)
      bytes.set(UInt32(0), at: 64 + 28)
      bytes.set(UInt64(0), at: 64 + 20)
    }
    return bytes
  }
}
