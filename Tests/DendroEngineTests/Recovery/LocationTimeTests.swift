import DendroTestSupport
import DendroTesting
import Synchronization
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// The time of a location's state if two threads have read the log.
@Suite("The time of one location")
struct LocationTimeTests {
  /// A disk on which a writer takes records back at the moment when the walk arrives at them, which the other
  /// thread has read before.
  private final class ShorteningDisk: ForwardingDisk {
    let disk: SimulatedDisk
    /// Where the segment ends then.
    let end: UInt64
    private let openCount = Atomic<Int>(0)

    init(_ disk: SimulatedDisk, end: UInt64) {
      self.disk = disk
      self.end = end
    }

    func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
      let file = try disk.open(path, mode)
      // The walk opens the segment, after it was asked for its database.
      guard path.hasSuffix(".log"), openCount.add(1, ordering: .relaxed).oldValue == 1 else {
        return file
      }
      return WalkedFile(file, path, self)
    }
  }

  private final class WalkedFile: ForwardingFile {
    let file: any File
    private let path: String
    private let disk: ShorteningDisk

    init(_ file: any File, _ path: String, _ disk: ShorteningDisk) {
      self.file = file
      self.path = path
      self.disk = disk
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
      -> Int
    {
      if offset >= disk.end { disk.disk.resize(path, to: Int(disk.end)) }
      return try file.read(into: buffer, at: offset)
    }
  }

  @Test("of the writes that are passed over, the last one's time counts as that of any other")
  func passedOver() throws {
    let disk = SimulatedDisk(seed: 8)
    let engine = try LoadingTests.open(disk)
    // Longer than what compression looks back, and hence stored as it is each time.
    let long = String(repeating: incompressible(70_000), count: 4)
    for number in 0..<40 {
      // Two writes a record, of which the second is later.
      for half in 0..<2 {
        engine.submit(try set("long/n\(half)", .string("\(number) \(long)")), completion: nil)
        disk.clock.advance(by: 1_000)
      }
      engine.pump()
    }
    try engine.close()
    let name = try #require(disk.names(in: "/db").first { $0.hasSuffix(".log") })
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    let outline = try SegmentOutline(
      try #require(directory.contents().segments.first), in: directory)
    directory.close()
    let end = try #require(outline.restarts.last).offset
    #expect(outline.restarts.count > 3)
    let shorter = disk.copy()
    shorter.resize("/db/" + name, to: Int(end))
    let whole = try Engine.state(of: .root, in: "/db", environment: shorter.environment)
    let state = try Engine.state(
      of: path("elsewhere"), in: "/db", environment: ShorteningDisk(disk, end: end).environment)
    #expect(disk.contents(of: "/db/" + name)?.count == Int(end), "the walk has come to the end")
    #expect(state.lsn == whole.lsn && state.time == whole.time)
  }
}
