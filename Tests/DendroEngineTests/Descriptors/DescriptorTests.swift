import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import Testing

@testable import DendroEngine

/// A process, or a system, that has no file descriptor left. A call that finds none has done nothing: so nothing is
/// uncertain, and a database goes on.
@Suite("Without a file descriptor")
struct DescriptorTests {
  /// The calls that take a descriptor.
  private static let calls: Set<DiskOperation.Kind> = [.open, .create, .list]

  private static func expectCause(_ failure: any Error, _ code: Int32, _ place: String) {
    #expect("\(failure)".contains("(errno \(code))"), "\(place): \(failure)")
  }

  @Test(
    "whichever open is refused, writes go on, the error says why, and the next attempt succeeds",
    arguments: DescriptorStep.all, [EMFILE, ENFILE])
  func everyOpen(step: DescriptorStep, code: Int32) throws {
    let probe = try DescriptorSubject()
    let before = probe.disk.operationCount
    try step.run(probe)
    let count = probe.disk.trace[before...].count { Self.calls.contains($0.kind) }
    #expect(count > 0)
    for number in 1...count {
      for isPermanent in [false, true] {
        let place = "\(step.name), open \(number)\(isPermanent ? " and on" : "")"
        let subject = try DescriptorSubject()
        subject.disk.inject(
          DiskFault(.error(code), of: Self.calls, at: number, isPermanent: isPermanent))
        var failure: (any Error)?
        do { try step.run(subject) } catch { failure = error }
        subject.disk.removeFaults()
        if let failure { Self.expectCause(failure, code, place) }
        #expect(throws: Never.self, "\(place)") { try subject.write() }
        if failure != nil {
          #expect(throws: Never.self, "\(place), again") { try step.run(subject) }
        }
        let root = subject.engine.head.root
        try subject.close()
        let reopened = try DescriptorSubject.open(subject.disk)
        #expect(reopened.head.root == root, "\(place)")
        #expect(reopened.report.unreadableCheckpoints.isEmpty, "\(place)")
        try reopened.close()
      }
    }
  }

  @Test(
    "whichever open of an opening is refused, the directory is as it was, and opens the next time",
    arguments: [EMFILE, ENFILE])
  func opening(code: Int32) throws {
    let closed = try DescriptorSubject()
    let root = closed.engine.head.root
    try closed.close()
    // In order; after a kill, with a torn record behind the last one; and not there yet.
    let killed = closed.disk.copy()
    let segment = "/db/" + killed.names(in: "/db").last { $0.hasSuffix(".log") }!
    let size = try #require(killed.contents(of: segment)).count
    killed.overwrite(segment, at: size, with: Array(repeating: 0xA5, count: 40))
    for (start, expected) in [(closed.disk, root), (killed, root), (SimulatedDisk(), .empty)] {
      let probe = start.copy()
      try DescriptorSubject.open(probe).close()
      let count = probe.trace.count { Self.calls.contains($0.kind) }
      for number in 1...count {
        let disk = start.copy()
        disk.inject(DiskFault(.error(code), of: Self.calls, at: number))
        do {
          // Something may do without.
          let engine = try DescriptorSubject.open(disk)
          #expect(engine.report.unreadableCheckpoints.isEmpty, "open \(number)")
          try engine.close()
        } catch {
          Self.expectCause(error, code, "open \(number)")
        }
        let engine = try DescriptorSubject.open(disk)
        #expect(engine.head.root == expected, "open \(number)")
        #expect(engine.report.unreadableCheckpoints.isEmpty, "open \(number)")
        try engine.close()
      }
    }
  }

  #if os(Linux)
    @Test("a roll takes the last descriptor; without one the log goes on in its segment")
    func lastDescriptor() async {
      await #expect(processExitsWith: .success) {
        var template = Array("/tmp/dendro-descriptors-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) }
        guard let made else { exit(1) }
        let path = String(cString: made)
        let engine = try Engine.open(at: path + "/db", options: .inline)
        func write(_ number: Int64) throws {
          let results = Received<Result<LogSequenceNumber?, EngineError>>()
          engine.submit(try set("n", .integer(number))) { results.add($0) }
          engine.pump()
          #expect(try results.all.first?.get() == LogSequenceNumber(UInt64(number)))
        }
        try write(1)
        var limit = rlimit()
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #expect(getrlimit(kind, &limit) == 0)
        let usual = limit
        // The lowest number that is free becomes the only one.
        let lowest = dup(STDERR_FILENO)
        close(lowest)
        limit.rlim_cur = rlim_t(lowest + 1)
        #expect(setrlimit(kind, &limit) == 0)
        #expect(throws: Never.self) { try engine.roll() }
        try write(2)
        var taken: [Int32] = []
        while true {
          let descriptor = dup(STDERR_FILENO)
          if descriptor < 0 { break }
          taken.append(descriptor)
        }
        let error = #expect(throws: EngineError.self) { try engine.roll() }
        #expect(error?.description.contains("(errno \(EMFILE))") == true)
        try write(3)
        for descriptor in taken { close(descriptor) }
        limit = usual
        #expect(setrlimit(kind, &limit) == 0)
        try engine.roll()
        try write(4)
        let root = engine.head.root
        try engine.close()
        let again = try Engine.open(at: path + "/db", options: .inline)
        #expect(again.head.root == root)
        try again.close()
        let files = DiskFileSystem()
        for name in try files.list(path + "/db") { try files.remove(path + "/db/" + name) }
        try files.remove(path + "/db")
        try files.remove(path)
      }
    }
  #endif
}
