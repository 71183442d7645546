/// A file or a directory of the simulated disk. Its place in the table of nodes is its inode.
struct DiskNode: Sendable, Hashable {
  var isDirectory: Bool
  var image = FileImage()
  var entries = DirectoryEntries()

  static let file = DiskNode(isDirectory: false)
  static let directory = DiskNode(isDirectory: true)
  /// The table of an empty disk: the root, durable from the start.
  static let rootTable = [DiskNode.directory]
  static let root = 0
}

/// The names in one directory, each with the node that it stands for.
struct DirectoryEntries: Sendable, Hashable {
  /// A name with its hash, so that a lookup compares integers.
  struct Entry: Sendable, Hashable {
    let hash: UInt64
    let name: String
    var node: Int
  }

  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }
  var count: Int { entries.count }
  /// The names, the last created first. `FileSystem.list` promises no order, so tests must not see a
  /// convenient one.
  var names: [String] { entries.reversed().map(\.name) }

  func forEach(_ body: (String, Int) -> Void) {
    for entry in entries { body(entry.name, entry.node) }
  }

  subscript(name: Name) -> Int? {
    index(of: name).map { entries[$0].node }
  }

  /// Gives the name to the node; returns whose it was before.
  @discardableResult
  mutating func set(_ name: Name, to node: Int) -> Int? {
    if let index = index(of: name) {
      let replaced = entries[index].node
      entries[index].node = node
      return replaced
    }
    entries.append(Entry(hash: name.hash, name: name.string, node: node))
    return nil
  }

  @discardableResult
  mutating func remove(_ name: Name) -> Int? {
    index(of: name).map { entries.remove(at: $0).node }
  }

  private func index(of name: Name) -> Int? {
    for index in entries.indices
    where entries[index].hash == name.hash && entries[index].name == name.string { return index }
    return nil
  }

  /// By what the names stand for, in whatever order they were made.
  static func == (a: DirectoryEntries, b: DirectoryEntries) -> Bool {
    a.entries.count == b.entries.count
      && a.entries.allSatisfy { entry in
        b.entries.contains { $0 == entry }
      }
  }

  func hash(into hasher: inout Hasher) {
    var sum: UInt64 = 0
    for entry in entries { sum &+= entry.hash ^ UInt64(truncatingIfNeeded: entry.node) }
    hasher.combine(sum)
  }
}

/// One component of a path.
struct Name: Sendable, Hashable, CustomStringConvertible {
  let string: String
  /// FNV-1a of the name's bytes: the same in every process, unlike `Hasher`.
  let hash: UInt64

  init(_ string: String) {
    var string = string
    self = string.withUTF8 { Name(utf8: $0) }
  }

  private init(utf8 bytes: UnsafeBufferPointer<UInt8>) {
    string = String(decoding: bytes, as: UTF8.self)
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    self.hash = hash
  }

  var description: String { string }

  static func == (a: Name, b: Name) -> Bool { a.hash == b.hash && a.string == b.string }
  func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// The components of an absolute path; empty ones are dropped.
  static func components(of path: String) -> [Name] {
    var path = path
    return path.withUTF8 { bytes in
      var names: [Name] = []
      names.reserveCapacity(4)
      var start = 0
      for end in 0...bytes.count where end == bytes.count || bytes[end] == UInt8(ascii: "/") {
        if start < end {
          names.append(Name(utf8: UnsafeBufferPointer(rebasing: bytes[start..<end])))
        }
        start = end + 1
      }
      return names
    }
  }
}
