import DendroPlatform

/// Where an export is written: standard output, a file, or a pipe or device.
///
/// A regular file is written aside, synchronized and renamed, so that a crash leaves the old one or the new
/// one; it keeps its mode. Links are followed and stay. What is neither a regular file nor a directory
/// receives the bytes as they come.
final class OutputFile {
  /// A file that takes the place of another one.
  private struct Replacement {
    var temporary: String
    var target: String
    /// Of the file that was there.
    var old: stat?
  }

  private let name: String
  private let descriptor: Int32
  /// Nil if the bytes are written in place.
  private let replacement: Replacement?
  private var isFinished = false
  private var terminalText = TerminalJSON()
  private lazy var isTerminal = isStandardOutput && Platform.isTerminal(1)

  /// Also if the path leads to it, as `/dev/stdout` does.
  var isStandardOutput: Bool { descriptor == 1 }
  /// Whether an interrupted export leaves what was there.
  var isReplacement: Bool { replacement != nil }

  /// - Parameter path: nil and `-` are standard output.
  init(_ path: String?) throws {
    guard let path, path != "-" else {
      name = "standard output"
      descriptor = 1
      replacement = nil
      return
    }
    name = path
    guard !path.isEmpty else { throw Failure.usage("--output is empty") }
    // Without O_TRUNC: the old file stays until the new one is complete.
    let existing = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY)
    guard existing >= 0 || errno == ENOENT else {
      throw Failure(.inputOutput, "cannot write to \(path): \(Platform.lastError)")
    }
    let old = Self.information(existing)
    if let old, let standardOutput = Self.information(1), Self.isSame(old, standardOutput),
      fcntl(1, F_GETFL) & O_ACCMODE != O_RDONLY
    {
      close(existing)
      descriptor = 1
      replacement = nil
      return
    }
    if let old, old.st_mode & S_IFMT != S_IFREG {
      descriptor = existing
      replacement = nil
      return
    }
    defer { if existing >= 0 { close(existing) } }
    let target = try Self.followingLinks(path)
    let (temporary, file) = try Self.makeTemporary(beside: target)
    descriptor = file
    replacement = Replacement(temporary: temporary, target: target, old: old)
  }

  /// Checks that a file can be written at a path, for output that comes much later. What is there stays.
  static func check(_ path: String) throws {
    if path == "-" { return }
    var information = stat()
    let isThere = stat(path, &information) == 0
    let kind = information.st_mode & S_IFMT
    guard isThere, kind != S_IFREG, kind != S_IFDIR else {
      // As it will be: its temporary file is removed again.
      _ = try OutputFile(path)
      return
    }
    // Opening a pipe would wait for its reader.
    guard access(path, W_OK) == 0 else {
      throw Failure(.inputOutput, "cannot write to \(path): \(Platform.lastError)")
    }
  }

  deinit {
    guard descriptor != 1 else { return }
    close(descriptor)
    if let replacement, !isFinished { unlink(replacement.temporary) }
  }

  /// Writes JSON text, or a part of it.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    if isTerminal {
      return try terminalText.escaped(bytes).withUnsafeBytes {
        try Platform.writeAll(descriptor, $0, to: name)
      }
    }
    try Platform.writeAll(descriptor, bytes, to: name)
  }

  /// Makes what was written durable, and puts a replacement in its place.
  func finish() throws {
    guard descriptor != 1 else { return }
    guard let replacement else {
      // Pipes and most devices cannot be synchronized.
      guard fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP else {
        throw failure("synchronize")
      }
      return
    }
    if let old = replacement.old {
      // Only root may give a file away; the owner before the mode, since a change of owner takes
      // bits of the mode.
      _ = fchown(descriptor, old.st_uid, old.st_gid)
      guard fchmod(descriptor, old.st_mode & 0o7777) == 0 else { throw failure("set the mode of") }
    }
    guard fsync(descriptor) == 0 else { throw failure("synchronize") }
    guard rename(replacement.temporary, replacement.target) == 0 else { throw failure("replace") }
    isFinished = true
    let directory = open(Self.directory(of: replacement.target), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return }
    defer { close(directory) }
    // Some file systems refuse this for directories; the file itself is durable.
    _ = fsync(directory)
  }

  private func failure(_ operation: String) -> Failure {
    Failure(.inputOutput, "cannot \(operation) \(name): \(Platform.lastError)")
  }

  // MARK: Finding the place

  private static func information(_ descriptor: Int32) -> stat? {
    var information = stat()
    return descriptor >= 0 && fstat(descriptor, &information) == 0 ? information : nil
  }

  private static func isSame(_ a: stat, _ b: stat) -> Bool {
    a.st_dev == b.st_dev && a.st_ino == b.st_ino
  }

  /// What a path names once the links in its last part are followed; there may be nothing yet.
  private static func followingLinks(_ path: String) throws -> String {
    var path = path
    // As many as the system follows.
    for _ in 0..<40 {
      var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
      let count = readlink(path, &buffer, buffer.count)
      guard count >= 0 else { return path }
      let bytes = buffer[..<count].lazy.map { UInt8(bitPattern: $0) }
      guard let target = String(validating: bytes, as: UTF8.self) else {
        throw Failure(.inputOutput, "the link \(path) leads to a name that is not UTF-8")
      }
      path = target.hasPrefix("/") ? target : directory(of: path) + "/" + target
    }
    errno = ELOOP
    throw Failure(.inputOutput, "cannot write to \(path): \(Platform.lastError)")
  }

  private static func directory(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  private static func makeTemporary(beside target: String) throws -> (path: String, file: Int32) {
    let directory = directory(of: target)
    // Not the name with a suffix, which may be too long; and a new file only, never one that another
    // user put there.
    for _ in 0..<16 {
      let number = String(UInt64.random(in: 0...UInt64.max), radix: 36)
      let path = "\(directory)/.dendro-export-\(number).tmp"
      let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
      if file >= 0 { return (path, file) }
      guard errno == EEXIST else { break }
    }
    throw Failure(.inputOutput, "cannot create a file in \(directory): \(Platform.lastError)")
  }
}
