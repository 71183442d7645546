import DendroPlatform

/// A file that is read from front to back, or standard input.
final class InputFile {
  let name: String
  private let descriptor: Int32
  /// Bytes in it; nil for a pipe.
  let size: UInt64?

  /// `-` is standard input.
  init(_ path: String) throws {
    if path == "-" {
      name = "standard input"
      descriptor = 0
    } else {
      name = path
      descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else {
        throw Failure(.inputOutput, "cannot open \(path): \(Platform.lastError)")
      }
    }
    var information = stat()
    if fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG {
      size = UInt64(max(0, information.st_size))
    } else {
      size = nil
    }
  }

  deinit { if descriptor > 0 { close(descriptor) } }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    try Platform.readSome(descriptor, into: buffer, from: name)
  }

  /// All of it, up to a limit that keeps a wrong file from filling the memory.
  func readAll(limit: Int) throws -> [UInt8] {
    var bytes = [UInt8]()
    let part = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 1)
    defer { part.deallocate() }
    while true {
      let count = try read(into: part)
      if count == 0 { return bytes }
      bytes.append(contentsOf: part[..<count])
      guard bytes.count <= limit else {
        throw Failure(.badInput, "\(name) has more than \(Format.bytes(UInt64(limit)))")
      }
    }
  }
}
