private import DendroPlatform
import DendroStorage

extension DiskState {
  mutating func createDirectory(_ path: String) throws(SystemError) {
    let operation = DiskOperation(.createDirectory, path)
    _ = try begin(operation)
    let (directory, name) = try attempt(operation) { (state) throws(SystemError) in
      try state.place(path)
    }
    guard nodes[directory].entries[name] == nil else { throw fail(operation, EEXIST) }
    guard freeSpace != 0 else { throw fail(operation, ENOSPC) }
    nodes.append(.directory)
    let node = nodes.count - 1
    nodes[directory].entries.set(name, to: node)
    end(operation, effect: .makeDirectory(directory: directory, name: name, node: node))
  }

  mutating func list(_ path: String) throws(SystemError) -> [String] {
    let operation = DiskOperation(.list, path)
    _ = try begin(operation)
    let node = try attempt(operation) { (state) throws(SystemError) in
      try state.resolve(Name.components(of: path))
    }
    guard nodes[node].isDirectory else { throw fail(operation, ENOTDIR) }
    end(operation)
    return nodes[node].entries.names
  }

  mutating func rename(_ from: String, to: String) throws(SystemError) {
    let operation = DiskOperation(.rename, from, newPath: to)
    _ = try begin(operation)
    let (old, new) = try attempt(operation) { (state) throws(SystemError) in
      (try state.place(from), try state.place(to))
    }
    guard let node = nodes[old.directory].entries[old.name] else { throw fail(operation, ENOENT) }
    if let replaced = nodes[new.directory].entries[new.name] {
      if replaced == node { return end(operation) }
      if nodes[replaced].isDirectory != nodes[node].isDirectory {
        throw fail(operation, nodes[replaced].isDirectory ? EISDIR : ENOTDIR)
      }
      if nodes[replaced].isDirectory, !nodes[replaced].entries.isEmpty {
        throw fail(operation, ENOTEMPTY)
      }
      nodes[new.directory].entries.remove(new.name)
      release(replaced)
      noteChange(of: replaced)
    }
    for changed in [old.directory, new.directory, node] { noteChange(of: changed) }
    nodes[old.directory].entries.remove(old.name)
    nodes[new.directory].entries.set(new.name, to: node)
    end(
      operation,
      effect: .rename(
        directory: old.directory, name: old.name, newDirectory: new.directory, newName: new.name,
        node: node))
  }

  mutating func remove(_ path: String) throws(SystemError) {
    let operation = DiskOperation(.remove, path)
    _ = try begin(operation)
    let (directory, name) = try attempt(operation) { (state) throws(SystemError) in
      try state.place(path)
    }
    guard let node = nodes[directory].entries[name] else { throw fail(operation, ENOENT) }
    if nodes[node].isDirectory, !nodes[node].entries.isEmpty { throw fail(operation, ENOTEMPTY) }
    nodes[directory].entries.remove(name)
    release(node)
    for changed in [directory, node] { noteChange(of: changed) }
    end(operation, effect: .unlink(directory: directory, name: name))
  }

  mutating func openDirectory(_ path: String) throws(SystemError) -> Int {
    let operation = DiskOperation(.open, path)
    _ = try begin(operation)
    let node = try attempt(operation) { (state) throws(SystemError) in
      try state.resolve(Name.components(of: path))
    }
    guard nodes[node].isDirectory else { throw fail(operation, ENOTDIR) }
    end(operation)
    return node
  }

  mutating func synchronizeDirectory(_ node: Int, _ path: String) throws(SystemError) {
    let operation = DiskOperation(.synchronizeDirectory, path)
    _ = try begin(operation)
    end(operation, effect: .synchronizeDirectory(node: node))
  }

  mutating func identity(_ path: String) throws(SystemError) -> FileIdentity {
    let operation = DiskOperation(.identity, path)
    _ = try begin(operation)
    let node = try attempt(operation) { (state) throws(SystemError) in
      try state.resolve(Name.components(of: path))
    }
    end(operation)
    return Self.identity(of: node)
  }

  static func identity(of node: Int) -> FileIdentity {
    FileIdentity(device: 1, inode: UInt64(node))
  }

  mutating func noteChange(of node: Int) { changeCounts[node, default: 0] += 1 }

  /// Nil if the call fails: a file system may have no watches.
  mutating func watch(_ path: String) -> (node: Int, changeCount: Int)? {
    let operation = DiskOperation(.watch, path)
    do { _ = try begin(operation) } catch { return nil }
    guard let node = node(at: path) else { return nil }
    end(operation)
    return (node, changeCounts[node, default: 0])
  }

  /// How often the watched names have changed; nil if the call fails.
  mutating func changeCount(_ node: Int, _ path: String) -> Int? {
    let operation = DiskOperation(.watch, path)
    do { _ = try begin(operation) } catch { return nil }
    end(operation)
    return changeCounts[node, default: 0]
  }
}
