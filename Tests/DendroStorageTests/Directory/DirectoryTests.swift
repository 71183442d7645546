import DendroPlatform
import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// A directory of its own on the real disk, removed with it.
final class TemporaryDirectory {
  let path: String

  init() throws {
    var template = Array("/tmp/dendro-XXXXXX".utf8CString)
    path = try #require(mkdtemp(&template).map { String(cString: $0) })
  }

  deinit {
    func remove(_ path: String) {
      for name in (try? DiskFileSystem().list(path)) ?? [] {
        if unlink(path + "/" + name) != 0 { remove(path + "/" + name) }
      }
      rmdir(path)
    }
    remove(path)
  }
}

@Suite struct DirectoryTests {
  @Test("names are made and parsed to the letter")
  func names() {
    for number in [0, 1, 42, .max] as [UInt64] {
      let lsn = LogSequenceNumber(number)
      let segment = SegmentName(firstLSN: lsn)
      #expect(FileName(segment.fileName) == .segment(segment))
      #expect(FileName(FileName.checkpointName(lsn)) == .checkpoint(lsn))
      for copy in [0, 1, 17] as [UInt64] {
        #expect(
          FileName(FileName.tornName(segment, offset: number, copy: copy))
            == .torn(segment, offset: number, copy: copy))
      }
      #expect(FileName(segment.fileName + ".tmp") == .temporary)
    }
    let name = "00000000000000000001"
    for foreign in [
      "", ".", "a.log", "1.log", "\(name).LOG", "\(name).log ", "\(name)1.log",
      "\(name).log.tmp.tmp",
      "99999999999999999999.log", "-0000000000000000001.log", "\(name).log.torn-", "a.tmp", ".tmp",
      "\(name).log.torn-01", "\(name).log.torn-1-0", "\(name).log.torn-1-", "dendro.lock.tmp",
      "\(name).checkpoint~", "0000000000000000000١.log",
    ] {
      #expect(FileName(foreign) == nil, "\(foreign)")
    }
  }

  @Test("foreign files are reported and left; our own unfinished ones go")
  func foreign() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.close()
    directory.close()
    for name in ["notes.txt", "a.tmp", "00000000000000000009.log.tmp"] {
      _ = try disk.open(root + "/" + name, .create)
    }
    let reader = try openReadOnly(disk)
    #expect(try reader.contents().temporaries.count == 1)
    #expect(disk.exists(root + "/00000000000000000009.log.tmp"))
    let again = try open(disk)
    let contents = try again.contents()
    #expect(contents.foreign == ["a.tmp", "notes.txt"])
    #expect(contents.temporaries.isEmpty && contents.segments.count == 1)
    #expect(disk.exists(root + "/notes.txt") && disk.exists(root + "/a.tmp"))
  }

  @Test("one opener writes: a second, in the same process, is refused with the pid")
  func lock() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    #expect(throws: StorageError.locked(path: root, pid: getpid())) { try open(disk) }
    directory.close()
    let again = try open(disk)
    #expect(throws: StorageError.self) { try directory.checkOwnership() }
    try again.checkOwnership()
  }

  @Test("on the real disk: also by another spelling and by a symbolic link; 0700 and 0600")
  func secondOpenerOnTheRealDisk() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path + "/a/b"
    let directory = try DatabaseDirectory.open(
      path, environment: .system, mode: .readWrite(create: true))
    let writer = try newLog(directory)
    try writer.append(payload(1))
    // A POSIX lock would go with any handle of the process that is closed.
    fclose(fopen(path + "/dendro.lock", "r+"))
    #expect(symlink(path, temporary.path + "/link") == 0)
    for spelling in [path, path + "//", temporary.path + "/a/../a/b", temporary.path + "/link"] {
      do throws(StorageError) {
        _ = try DatabaseDirectory.open(
          spelling, environment: .system, mode: .readWrite(create: true))
        Issue.record("\(spelling) was opened twice")
      } catch {
        guard case .locked(_, let pid) = error else {
          Issue.record("\(error)")
          continue
        }
        #expect(pid == getpid())
      }
    }
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o700)
    #expect(
      stat(path + "/" + writer.segmentName.fileName, &status) == 0
        && status.st_mode & 0o777 == 0o600)
    try writer.close()
    directory.close()
    let again = try DatabaseDirectory.open(
      temporary.path + "/link", environment: .system, mode: .readWrite(create: false))
    #expect(try read(again)?.entries.map(\.payload) == [payload(1)])
  }

  @Test("a lock file or directory that was moved or replaced is noticed")
  func movedOrReplacedDirectory() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path + "/db"
    let directory = try DatabaseDirectory.open(
      path, environment: .system, mode: .readWrite(create: true))
    try directory.checkOwnership()
    #expect(rename(path, temporary.path + "/moved") == 0)
    #expect(throws: StorageError.self) { try directory.checkOwnership() }
    let other = try DatabaseDirectory.open(
      path, environment: .system, mode: .readWrite(create: true))
    #expect(throws: StorageError.self) { try directory.checkOwnership() }
    try other.checkOwnership()
    #expect(unlink(path + "/dendro.lock") == 0)
    #expect(throws: StorageError.self) { try other.checkOwnership() }
  }

  @Test("if there is no database, opening one that must exist says so")
  func notFound() throws {
    let disk = SimulatedDisk()
    #expect(throws: StorageError.notFound(path: root)) { try open(disk, create: false) }
    #expect(throws: StorageError.notFound(path: root)) { try openReadOnly(disk) }
    try disk.createDirectory(root)
    #expect(throws: StorageError.notFound(path: root)) { try open(disk, create: false) }
    #expect(disk.names(in: root) == [])
  }

  @Test("readers hold the writer from removing; a reader changes nothing")
  func readers() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(1))
    let calls = disk.operationCount
    var reader: DatabaseDirectory? = try openReadOnly(disk)
    #expect(try read(#require(reader))?.entries.count == 1)
    #expect(disk.trace[calls...].allSatisfy { !$0.kind.changes })
    #expect(throws: StorageError.self) { try reader?.removeSegment(writer.segmentName) }
    #expect(try directory.mayDelete() == false)
    #expect(
      try directory.withoutReaders { () throws(StorageError) in Issue.record("ran") } == false)
    reader?.close()
    reader = nil
    #expect(try directory.mayDelete())
    #expect(try directory.withoutReaders { () throws(StorageError) in })
  }

  @Test("a reader beside a live writer takes a bad tail as not yet there, and follows a roll")
  func readOnlyTail() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory, options: LogOptions())
    try writer.append(payload(1))
    let size = Int(writer.segmentByteCount)
    disk.overwrite(segmentPath(1), at: size, with: noise(40, seed: 1))
    let reader = try openReadOnly(disk)
    let log = try #require(try read(reader))
    #expect(log.entries.count == 1 && log.end.torn == nil)
    #expect(try reader.contents().tornFiles == [])
    try writer.append(payload(2))
    let listed = try reader.contents()
    try writer.roll(time: 0)
    try writer.append(payload(3))
    var found: [UInt64] = []
    _ = try LogReader.read(reader, contents: listed) { (record, _) throws(StorageError) in
      found.append(record.firstLSN.rawValue)
    }
    #expect(found == [1, 2, 3])
  }

  @Test("the system's disk: whole operations")
  func realDisk() throws {
    let temporary = try TemporaryDirectory()
    let files = DiskFileSystem()
    let path = temporary.path + "/file"
    let file = try files.open(at: path, .create)
    #expect(throws: StorageError.self) { try files.open(at: path, .create) }
    let content = noise(10_000, seed: 1)
    try content.withUnsafeBytes { try file.writeAll($0, at: 5, path: path) }
    try file.preallocate(from: 10_005, count: 4096)
    #expect(try file.size(path: path) == 14_101)
    var buffer = [UInt8](repeating: 1, count: 20_000)
    let count = try buffer.withUnsafeMutableBytes {
      try file.readFully(into: $0, at: 0, path: path)
    }
    #expect(count == 14_101)
    #expect(Array(buffer[5..<10_005]) == content)
    #expect(buffer[10_005..<14_101].allSatisfy { $0 == 0 })
    try file.truncate(to: 3, path: path)
    try file.synchronize(path: path)
    #expect(try file.size(path: path) == 3)
    try files.rename(from: path, to: path + "2")
    try files.synchronizeDirectory(at: temporary.path)
    #expect(try files.names(in: temporary.path) == ["file2"])
    #expect(try files.identity(at: path + "2") == file.identity())
    try files.remove(at: path + "2")
    try files.remove(at: path + "2")
    let directory = temporary.path + "/directory"
    try files.createDirectories(to: directory + "/below")
    #expect(throws: StorageError.self) { try files.remove(at: directory) }
    try files.remove(at: directory + "/below")
    try files.remove(at: directory)
    #expect(try files.names(in: temporary.path) == [])
    #expect(throws: StorageError.self) { try files.open(at: "/dev/null\0/x", .read) }
  }

  @Test("a pipe, a directory and a device under our names are refused, not waited for")
  func notFiles() throws {
    for kind in 0..<3 {
      let temporary = try TemporaryDirectory()
      let path = temporary.path + "/" + SegmentName(firstLSN: LogSequenceNumber(1)).fileName
      switch kind {
      case 0: #expect(mkfifo(path, 0o600) == 0)
      case 1: #expect(mkdir(path, 0o700) == 0)
      default: #expect(symlink("/dev/zero", path) == 0)
      }
      let directory = try DatabaseDirectory.open(
        temporary.path, environment: .system, mode: .readOnly)
      #expect(throws: StorageError.self) { try read(directory) }
    }
  }

  @Test("an endlessly interrupted call is an error, not a hang")
  func endlesslyInterruptedCall() throws {
    let disk = SimulatedDisk()
    disk.inject(.failure(at: 1, with: SystemError.interrupted.code, isPermanent: true))
    #expect(throws: StorageError.self) { try open(disk) }
  }
}
