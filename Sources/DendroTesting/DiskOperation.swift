import DendroStorage

/// One call that was made on a ``SimulatedDisk``, as its trace keeps it.
public struct DiskOperation: Sendable, CustomStringConvertible {
  /// Which call.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    case createDirectory, list, open, create, rename, remove, synchronizeDirectory, identity
    /// Begins to watch the names in a directory, or asks a watch for changes.
    case watch
    case read, write, preallocate, truncate, synchronize, size, lock

    /// Whether the call, when it succeeds, can change what a crash leaves behind.
    public var changes: Bool {
      switch self {
      case .list, .open, .identity, .watch, .read, .size, .lock: false
      default: true
      }
    }
  }

  /// Which call.
  public let kind: Kind
  /// What it was made on; for a rename, the old path.
  public let path: String
  /// A rename's new path.
  public let newPath: String?
  /// Where in the file, in bytes; a truncation's new size.
  public let offset: UInt64
  /// How many bytes were asked for.
  public let count: Int
  /// How many bytes the call handled.
  public internal(set) var done: Int
  /// What the call failed with, an `errno`; 0 when it succeeded.
  public internal(set) var errno: Int32 = 0

  /// What the call did to the disk; nil when that is nothing.
  var effect: DiskEffect?

  init(
    _ kind: Kind, _ path: String, newPath: String? = nil, offset: UInt64 = 0, count: Int = 0,
    effect: DiskEffect? = nil
  ) {
    self.kind = kind
    self.path = path
    self.newPath = newPath
    self.offset = offset
    self.count = count
    self.done = count
    self.effect = effect
  }

  /// Whether the call left something for a crash to take or to spare: a place to crash after.
  public var isCrashPoint: Bool { effect != nil }

  /// One line: the call, its path, offset, count, and how it ended.
  public var description: String {
    var text = "\(kind.rawValue) \(path)"
    if let newPath { text += " to \(newPath)" }
    switch kind {
    case .read, .write, .preallocate:
      text += " at \(offset), \(count) bytes"
      if done != count { text += " (\(done) done)" }
    case .truncate: text += " to \(offset)"
    default: break
    }
    return errno == 0 ? text : text + ": \(SystemError(errno))"
  }
}

/// What one call did to the disk, in terms of nodes, so that no path has to be resolved twice.
enum DiskEffect: Sendable, Hashable, CustomStringConvertible {
  case write(node: Int, offset: Int, bytes: [UInt8])
  case extend(node: Int, size: Int)
  case truncate(node: Int, size: Int)
  case link(directory: Int, name: Name, node: Int, isNew: Bool)
  case makeDirectory(directory: Int, name: Name, node: Int)
  case unlink(directory: Int, name: Name)
  case rename(directory: Int, name: Name, newDirectory: Int, newName: Name, node: Int)
  case synchronize(node: Int)
  /// The system tried, failed, and will not try again. The pending changes of the file may or may not have
  /// reached the disk, and no later synchronize reports which.
  case failSynchronize(node: Int)
  case synchronizeDirectory(node: Int)

  /// Whether a crash can take it back: everything but the synchronizations.
  var isRevocable: Bool {
    switch self {
    case .synchronize, .failSynchronize, .synchronizeDirectory: false
    default: true
    }
  }

  /// In terms of inodes, as the pending changes of a crash point are listed.
  var description: String {
    switch self {
    case .write(let node, let offset, let bytes):
      "write \(bytes.count) bytes at \(offset) of inode \(node)"
    case .extend(let node, let size): "extend inode \(node) to \(size)"
    case .truncate(let node, let size): "truncate inode \(node) to \(size)"
    case .link(let directory, let name, let node, _):
      "name inode \(node) \(name) in inode \(directory)"
    case .makeDirectory(let directory, let name, let node):
      "make directory \(name), inode \(node), in inode \(directory)"
    case .unlink(let directory, let name): "remove \(name) from inode \(directory)"
    case .rename(let directory, let name, let newDirectory, let newName, let node):
      "rename inode \(node) from \(name) in inode \(directory) to \(newName) in inode \(newDirectory)"
    case .synchronize(let node): "synchronize inode \(node)"
    case .failSynchronize(let node): "fail to synchronize inode \(node)"
    case .synchronizeDirectory(let node): "synchronize the entries of inode \(node)"
    }
  }
}
