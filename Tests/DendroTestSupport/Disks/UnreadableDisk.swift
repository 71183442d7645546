package import DendroStorage
package import DendroTesting

/// A simulated disk, some of whose sectors of 512 bytes cannot be read.
package final class UnreadableDisk: ForwardingDisk {
  package let disk: SimulatedDisk
  private let sectors: [String: Set<Int>]
  private let error: SystemError

  /// - Parameters:
  ///   - sectors: the numbers of those that cannot be read, by the paths of the files.
  ///   - error: what a reading of them throws; `EIO` unless it is said.
  package init(
    _ disk: SimulatedDisk, sectors: [String: Set<Int>], error: SystemError = .inputOutput
  ) {
    (self.disk, self.sectors, self.error) = (disk, sectors, error)
  }

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    let file = try disk.open(path, mode)
    guard mode == .read, let sectors = sectors[path] else { return file }
    return UnreadableFile(file, sectors, error)
  }
}

private final class UnreadableFile: ForwardingFile {
  let file: any File
  private let sectors: Set<Int>
  private let error: SystemError

  init(_ file: any File, _ sectors: Set<Int>, _ error: SystemError) {
    (self.file, self.sectors, self.error) = (file, sectors, error)
  }

  func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let start = Int(offset)
    let end = min(Int(try file.size()), start + buffer.count)
    if start < end, (start / 512...(end - 1) / 512).contains(where: { sectors.contains($0) }) {
      throw error
    }
    return try file.read(into: buffer, at: offset)
  }
}
