import Dendro
import DendroEngine
import DendroPlatform
import DendroProtocol
import Dispatch

/// What clients have registered to be written when they leave, on the disk: the next opening writes what a crash
/// of the server has left.
///
/// Each session has a file with its own requests, as they came, in a folder beside the database's directory. A
/// request is answered once it is on the disk; a torn last one was not. The file is removed once the session's
/// last write is durable.
///
/// Calls of the system are made on the journal's queue.
final class DisconnectJournal: Sendable {
  private let folder: String
  private let queue = DispatchQueue(label: "dendro-journal", autoreleaseFrequency: .workItem)

  /// The largest file that is read back; requests beyond it are refused.
  private static let fileByteLimit = 64 << 20

  /// - Returns: nil for a database that has no files to write.
  init?(_ engine: Engine) {
    guard let path = engine.path, !engine.isReadOnly else { return nil }
    folder = path + ".on-disconnect"
  }

  // MARK: Registering

  /// Adds a request to a session's file.
  ///
  /// - Parameter completion: called with whether the request is on the disk.
  func append(
    _ message: [UInt8], of session: String, completion: @escaping @Sendable (Bool) -> Void
  ) {
    queue.async { [self] in completion(write(message, session)) }
  }

  /// Removes a session's file, after all that was to be added to it.
  func remove(_ session: String) {
    queue.async { [self] in _ = unlink("\(folder)/\(session)") }
  }

  /// Waits for what was asked for so far.
  func wait() { queue.sync {} }

  private func write(_ message: [UInt8], _ session: String) -> Bool {
    let path = "\(folder)/\(session)"
    var descriptor = Self.openFile(path)
    if descriptor < 0, errno == ENOENT {
      guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { return false }
      descriptor = Self.openFile(path)
    }
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let end = lseek(descriptor, 0, SEEK_END)
    let record = Array("\(message.count)\n".utf8) + message
    guard end >= 0, Int(end) + record.count <= Self.fileByteLimit else { return false }
    var offset = 0
    while offset < record.count {
      let count = record[offset...].withUnsafeBytes {
        DendroPlatform.write(descriptor, $0.baseAddress, $0.count)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return cut(descriptor, at: end) }
      offset += count
    }
    guard fdatasync(descriptor) == 0 else { return cut(descriptor, at: end) }
    // A new file has to be found, too.
    return end > 0 || synchronizeFolder()
  }

  /// Takes back a request that may not be on the disk as a whole.
  private func cut(_ descriptor: Int32, at end: Int) -> Bool {
    _ = ftruncate(descriptor, end)
    return false
  }

  private static func openFile(_ path: String) -> Int32 {
    open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
  }

  private func synchronizeFolder() -> Bool {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return fsync(descriptor) == 0
  }

  // MARK: After a crash

  /// Writes what the sessions of a server that has crashed had registered.
  func writeLeftovers(to engine: Engine) {
    guard let stream = opendir(folder) else { return }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { bytes in
        bytes.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    closedir(stream)
    for name in names.sorted() {
      let bytes = BoundedFile.contents(
        of: "\(folder)/\(name)", byteLimit: Self.fileByteLimit, followsLink: false)
      guard let bytes else { continue }
      guard let draft = Self.operations(bytes).draft else {
        remove(name)
        continue
      }
      engine.submit(draft) { result in
        if case .success = result { self.remove(name) }
      }
    }
  }

  /// What the requests of a file add up to.
  static func operations(_ bytes: [UInt8]) -> DisconnectOperations {
    var operations = DisconnectOperations()
    var rest = bytes[...]
    while let line = rest.firstIndex(of: UInt8(ascii: "\n")),
      let count = Int(String(decoding: rest[..<line], as: UTF8.self)), count >= 0,
      count <= rest.endIndex - line - 1
    {
      let end = line + 1 + count
      if case .request(let request) = WireMessage(Array(rest[(line + 1)..<end])) {
        switch request.action {
        case .success(.onDisconnect(let draft, _)): operations.add(draft)
        case .success(.cancelOnDisconnect(let path)): operations.cancel(path)
        default: break
        }
      }
      rest = rest[end...]
    }
    return operations
  }
}
