import DendroStorage
import DendroTesting

extension SimulatedDisk {
  /// A file's content as text, for expectations that can be read.
  func text(_ path: String) -> String? {
    contents(of: path).map { String(decoding: $0.map { $0 == 0 ? 0x2e : $0 }, as: UTF8.self) }
  }

  func make(_ path: String) throws -> any File { try open(path, .create) }
}

extension File {
  /// Writes all of the text, or fails the test.
  func put(_ text: String, at offset: UInt64 = 0) throws {
    let bytes = Array(text.utf8)
    let count = try bytes.withUnsafeBytes { (buffer) throws in try write(buffer, at: offset) }
    precondition(count == bytes.count, "no fault was injected")
  }

  func get(_ count: Int, at offset: UInt64 = 0) throws -> String {
    var bytes = [UInt8](repeating: 0, count: count)
    let read = try bytes.withUnsafeMutableBytes { try self.read(into: $0, at: offset) }
    return String(decoding: bytes[..<read], as: UTF8.self)
  }
}

extension CrashPoint {
  /// What `look` sees on the disks of all listed states.
  func outcomes<T: Hashable>(
    _ options: CrashEnumeration = CrashEnumeration(), _ look: (SimulatedDisk) -> T
  ) -> Set<T> {
    var seen: Set<T> = []
    forEachState(options) { seen.insert(look(disk($0))) }
    return seen
  }
}
