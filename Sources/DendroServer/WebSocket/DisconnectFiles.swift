import Dendro
import DendroEngine
import DendroPlatform
import DendroProtocol
import Dispatch

/// The files in which releases before the second root kept what clients had registered: one of each session, in a folder
/// beside the database's directory, with the requests as they came.
struct DisconnectFiles {
  private let folder: String

  /// The largest file that is read back.
  private static let fileByteLimit = 64 << 20

  /// - Returns: nil if there is no such folder.
  init?(_ engine: Engine) {
    guard let path = engine.path else { return nil }
    guard Self.areThere(beside: path) else { return nil }
    folder = Self.folder(beside: path)
  }

  private static func folder(beside directory: String) -> String { directory + ".on-disconnect" }

  /// Whether there is such a folder for the database in a directory.
  static func areThere(beside directory: String) -> Bool {
    var status = stat()
    return lstat(folder(beside: directory), &status) == 0
      && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Passes on what is in the files, and removes each that was kept, then the folder.
  ///
  /// Waits for the disk on the calling thread.
  ///
  /// - Returns: whether no file whose operations were kept is left, so that what is written afterwards is not written again.
  /// - Parameter keep: gets the session's id, its operations, and what it calls with whether they are kept.
  func takeOver(
    _ keep: (String, DisconnectOperations, @escaping @Sendable (Bool) -> Void) -> Void
  ) -> Bool {
    var answers: [(path: String, answer: Answer)] = []
    for name in names() {
      let path = "\(folder)/\(name)"
      let bytes = BoundedFile.contents(
        of: path, byteLimit: Self.fileByteLimit, followsLink: false)
      guard let bytes else { continue }
      let operations = Self.operations(bytes)
      let answer = Answer()
      answers.append((path, answer))
      if operations.isEmpty {
        answer.give(true)
      } else {
        keep(name, operations) { answer.give($0) }
      }
    }
    var isRemoved = true
    for (path, answer) in answers where answer.take() {
      if unlink(path) != 0 { isRemoved = false }
    }
    guard isRemoved, synchronizeFolder() else { return false }
    _ = rmdir(folder)
    return true
  }

  private func names() -> [String] {
    guard let stream = opendir(folder) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { bytes in
        bytes.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }

  private func synchronizeFolder() -> Bool {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return fsync(descriptor) == 0
  }

  /// What the requests of a file add up to. A last one that was cut short was never answered.
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

/// An answer that is waited for.
///
/// Unchecked `Sendable`: it is set before the semaphore is signalled, and read after.
private final class Answer: @unchecked Sendable {
  private let isGiven = DispatchSemaphore(value: 0)
  private var answer = false

  func give(_ answer: Bool) {
    self.answer = answer
    isGiven.signal()
  }

  func take() -> Bool {
    isGiven.wait()
    return answer
  }
}
