import DendroPlatform
import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// Calls of the disk that fail, each of them in turn.
@Suite struct LogFaultTests {
  /// Ten writes over two segments with an idle record and a close; returns how many were acknowledged. Stops
  /// at the first error, except that a full disk is cut back and tried again once.
  private func work(_ disk: SimulatedDisk, acknowledged: inout Int) throws(StorageError) {
    let directory = try open(disk)
    defer { directory.close() }
    let writer: LogWriter
    if let log = try read(directory) {
      writer = try LogWriter.resume(
        directory, end: try repairTail(directory, log.end), options: LogOptions())
    } else {
      writer = try newLog(directory, options: LogOptions())
    }
    for number in Int(writer.lastLSN.rawValue)..<10 {
      do {
        try append(writer, number)
      } catch {
        guard error.isOutOfSpace, writer.poison == nil else { throw error }
        try writer.cutBack()
        guard try writer.probe() else { throw error }
        try append(writer, number)
      }
      acknowledged = number + 1
      if number == 5 { try writer.roll(time: 1_704_067_200_000) }
      if number == 7 { try writer.writeIdleRecord() }
    }
    try writer.close()
  }

  private func append(_ writer: LogWriter, _ number: Int) throws(StorageError) {
    try writer.append(number == 3 ? noise(5000, seed: 3) : payload(number))
  }

  private func expected(_ count: Int) -> [[UInt8]] {
    (0..<count).map { $0 == 3 ? noise(5000, seed: 3) : payload($0) }
  }

  /// Whatever failed: what was acknowledged is there, also after a crash; and writes work once the
  /// disk does.
  private func check(_ disk: SimulatedDisk, acknowledged: Int, _ place: String) {
    disk.removeFaults()
    let point = disk.crashPoint()
    for state in [point.allKept, point.allDropped] {
      for again in [point.disk(state)] {
        verify(again, acknowledged, "\(place), after a crash \(state)")
      }
    }
    verify(disk, acknowledged, place)
  }

  private func verify(_ disk: SimulatedDisk, _ acknowledged: Int, _ place: String) {
    do throws(StorageError) {
      let found = try read(disk)?.entries.map(\.payload) ?? []
      #expect(found.count >= acknowledged, "\(place): \(found.count) of \(acknowledged)")
      #expect(found == expected(found.count), "\(place)")
      var count = 0
      try work(disk, acknowledged: &count)
      #expect(try read(disk)?.entries.map(\.payload) == expected(10), "\(place)")
      // And no write acknowledged since depends on what the failed calls left.
      let point = disk.crashPoint()
      #expect(
        try read(point.disk(point.allDropped))?.entries.map(\.payload) == expected(10), "\(place)")
    } catch {
      Issue.record("\(place): \(error)")
    }
  }

  static let effects: [DiskFault.Effect] = [
    .error(SystemError.inputOutput.code), .error(SystemError.noSpace.code),
    .error(SystemError.quotaExceeded.code), .error(SystemError.interrupted.code), .short(1),
    .partial(3, SystemError.noSpace.code), .partial(5, SystemError.inputOutput.code),
    .failedSynchronize(.kept), .failedSynchronize(.reverted),
  ]

  @Test("the n-th call fails, for every n, in every way, once and for good", arguments: effects)
  func everyCall(effect: DiskFault.Effect) throws {
    for isPermanent in [false, true] {
      var number = 1
      while true {
        let disk = SimulatedDisk(seed: 9)
        let place = "\(effect) at \(number)\(isPermanent ? " and on" : "")"
        var kinds: Set<DiskOperation.Kind>?
        switch effect {
        case .short: kinds = [.read, .write]
        case .partial: kinds = [.write]
        case .failedSynchronize: kinds = [.synchronize]
        case .error: kinds = nil
        }
        disk.inject(DiskFault(effect, of: kinds, at: number, isPermanent: isPermanent))
        var acknowledged = 0
        do throws(StorageError) {
          try work(disk, acknowledged: &acknowledged)
        } catch {
          #expect(!error.isDamage, "\(place): \(error)")
        }
        let calls = disk.trace.filter { kinds?.contains($0.kind) ?? true }.count
        check(disk, acknowledged: acknowledged, place)
        if number > calls { break }
        number += 1
      }
    }
  }

  @Test("short reads, short writes and interruptions are continued, and no caller notices")
  func shortAndInterruptedCalls() throws {
    let plain = SimulatedDisk(seed: 9)
    var acknowledged = 0
    try work(plain, acknowledged: &acknowledged)
    var faults = [1, 7, 100].map {
      DiskFault(.short($0), of: [.read, .write], at: 1, isPermanent: true)
    }
    for number in 1...plain.operationCount {
      faults.append(.failure(at: number, with: SystemError.interrupted.code))
    }
    for fault in faults {
      let disk = SimulatedDisk(seed: 9)
      disk.inject(fault)
      var acknowledged = 0
      try work(disk, acknowledged: &acknowledged)
      #expect(acknowledged == 10, "\(fault)")
      #expect(try read(disk)?.entries.map(\.payload) == expected(10), "\(fault)")
      disk.removeFaults()
      for name in plain.names(in: root) where name.hasSuffix(".log") {
        let path = root + "/" + name
        #expect(disk.contents(of: path) == plain.contents(of: path), "\(fault): \(name)")
      }
    }
  }

  @Test("an I/O error: of an append it poisons, of a read it refuses to open; nothing is changed")
  func inputOutputErrors() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    disk.inject(.failure(of: .write, at: 1, with: SystemError.inputOutput.code))
    #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    guard case .io(_, segmentPath(1), _, .inputOutput) = writer.poison else {
      Issue.record("\(String(describing: writer.poison))")
      return
    }
    #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    directory.close()

    let before = disk.contents(of: segmentPath(1))
    let again = try open(disk)
    var number = 1
    while true {
      let calls = disk.operationCount
      disk.inject(.failure(of: .read, at: number, with: SystemError.inputOutput.code))
      do throws(StorageError) {
        #expect(try read(again)?.entries.map(\.payload) == [payload(0)])
        #expect(disk.trace[calls...].filter { $0.kind == .read }.count < number)
        break
      } catch {
        guard case .io(_, segmentPath(1), .some, .inputOutput) = error else {
          Issue.record("read \(number): \(error)")
          break
        }
      }
      disk.removeFaults()
      number += 1
    }
    #expect(number > 1)
    #expect(disk.contents(of: segmentPath(1)) == before)
  }

  @Test("a failed synchronize poisons: nothing more is taken, nothing is tried again")
  func failedSynchronizePoisons() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    #expect(writer.poison != nil && writer.durableUpTo == LogSequenceNumber(1))
    let calls = disk.operationCount
    #expect(throws: StorageError.self) { try writer.append(payload(2)) }
    #expect(throws: StorageError.self) { try writer.synchronize() }
    #expect(throws: StorageError.self) { try writer.cutBack() }
    #expect(throws: StorageError.self) { try writer.writeIdleRecord() }
    #expect(throws: StorageError.self) { try writer.roll(time: 0) }
    #expect(throws: StorageError.self) { _ = try writer.probe() }
    try writer.close()
    #expect(disk.operationCount == calls)
  }

  @Test(
    "after a failed synchronize and a reopening, nothing rests on pages that the disk never got")
  func doubtfulPagesAfterAFailedSynchronize() throws {
    for pages in DiskFault.Pages.allCases {
      let disk = SimulatedDisk()
      let directory = try open(disk)
      let writer = try newLog(directory)
      try writer.append(payload(0))
      disk.inject(.failedSynchronize(at: 1, pages: pages))
      #expect(throws: StorageError.self) { try writer.append(payload(1)) }
      directory.close()
      let (_, resumed, log) = try resume(disk)
      try resumed.append(bytes("later"))
      let point = disk.crashPoint()
      let left = try #require(try read(point.disk(point.allDropped)))
      #expect(left.entries.map(\.payload) == log.entries.map(\.payload) + [bytes("later")])
    }
  }

  @Test("a full disk: cut back, refused until there is room, then on")
  func fullDisk() throws {
    for space in stride(from: 0, to: 6000, by: 97) {
      let disk = SimulatedDisk()
      let directory = try open(disk)
      let writer = try newLog(directory, options: LogOptions())
      try writer.append(payload(0))
      try writer.cutBack()
      disk.freeSpace = space
      var written = 1
      do throws(StorageError) {
        while written < 100 {
          try writer.append(noise(200, seed: UInt64(written)))
          written += 1
        }
      } catch {
        #expect(error.isOutOfSpace && writer.poison == nil)
      }
      #expect(throws: StorageError.self) { try writer.append(payload(1)) }
      try writer.cutBack()
      #expect(try writer.probe() == false)
      #expect(try read(directory)?.entries.count == written)
      disk.freeSpace = nil
      #expect(try writer.probe())
      try writer.append(bytes("on"))
      try writer.close()
      let log = try #require(try read(directory))
      #expect(log.entries.count == written + 1 && log.entries.last?.payload == bytes("on"))
    }
  }

  @Test("a quota is a full disk: cut back to the last good record, then on")
  func exceededQuota() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    let size = Int(writer.segmentByteCount)
    disk.inject(DiskFault(.partial(9, SystemError.quotaExceeded.code), of: [.write], at: 1))
    #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    #expect(writer.poison == nil)
    try writer.cutBack()
    #expect(disk.contents(of: segmentPath(1))?.count == size)
    try writer.append(payload(2))
    #expect(try read(directory)?.entries.map(\.payload) == [payload(0), payload(2)])
  }

  @Test("a full disk does not prevent opening after a crash")
  func openingFullDisk() throws {
    for isTorn in [false, true] {
      let disk = SimulatedDisk()
      let directory = try open(disk)
      let writer = try newLog(directory)
      try writer.append(payload(0))
      try writer.append(payload(1), durably: false)
      directory.close()
      if isTorn {
        disk.overwrite(segmentPath(1), at: Int(writer.segmentByteCount), with: noise(9, seed: 1))
      }
      disk.freeSpace = 0
      let (again, resumed, log) = try resume(disk)
      #expect(log.entries.count == 2 && log.end.durableUpTo == LogSequenceNumber(2))
      #expect(try again.contents().temporaries == [])
      disk.freeSpace = nil
      try resumed.append(payload(2))
      #expect(try read(again)?.entries.count == 3)
    }
  }

  @Test("a cut that fails poisons")
  func failedCutPoisons() throws {
    for kind in [DiskOperation.Kind.truncate, .synchronize] {
      let disk = SimulatedDisk()
      let directory = try open(disk)
      let writer = try newLog(directory)
      try writer.append(payload(0))
      disk.inject(DiskFault(.partial(9, SystemError.noSpace.code), of: [.write], at: 1))
      #expect(throws: StorageError.self) { try writer.append(payload(1)) }
      disk.inject(.failure(of: kind, at: 1, with: SystemError.noSpace.code))
      #expect(throws: StorageError.self) { try writer.cutBack() }
      #expect(writer.poison != nil)
      #expect(throws: StorageError.self) { try writer.append(payload(1)) }
      directory.close()
      #expect(try read(disk)?.entries.count == 1)
    }
  }

  @Test("a roll without room leaves the writer where it was")
  func rollWithoutRoom() throws {
    for space in [0, 10, 64, 80, 120, 200] {
      let disk = SimulatedDisk()
      let directory = try open(disk)
      let writer = try newLog(directory)
      try writer.append(payload(0))
      disk.freeSpace = space
      do throws(StorageError) {
        try writer.roll(time: 0)
      } catch {
        #expect(error.isOutOfSpace && writer.poison == nil, "\(space): \(error)")
        #expect(writer.segmentName.firstLSN == LogSequenceNumber(1))
      }
      disk.freeSpace = nil
      try writer.append(payload(1))
      try writer.roll(time: 0)
      try writer.append(payload(2))
      directory.close()
      #expect(try read(disk)?.entries.map(\.payload) == (0..<3).map { payload($0) })
    }
  }

  @Test("if space cannot be taken ahead, the log does without")
  func noPreallocation() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    disk.inject(
      .failure(of: .preallocate, at: 1, with: SystemError.notSupported.code, isPermanent: true))
    let writer = try newLog(directory, options: LogOptions())
    for number in 0..<5 { try writer.append(payload(number)) }
    #expect(try writer.probe())
    try writer.append(payload(5))
    try writer.roll(time: 0)
    try writer.append(payload(6))
    #expect(disk.trace.filter { $0.kind == .preallocate && $0.errno == 0 }.isEmpty)
    #expect(try read(directory)?.entries.count == 7)
  }

  @Test("a segment that was removed or replaced while open is noticed before the next batch")
  func replacedSegment() throws {
    for replace in [false, true] {
      let disk = SimulatedDisk()
      let directory = try open(disk)
      let writer = try newLog(directory)
      try writer.append(payload(0))
      try disk.rename(segmentPath(1), to: root + "/elsewhere")
      if replace { _ = try disk.open(segmentPath(1), .create) }
      #expect(throws: StorageError.self) { try writer.append(payload(1)) }
      guard case .ownershipLost = writer.poison else {
        Issue.record("\(String(describing: writer.poison))")
        continue
      }
    }
  }

  /// A log whose first segment has lost its seal, as a crash in a roll leaves it.
  private static func unsealed() throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 8)
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<3 { try writer.append(payload(number)) }
    let sealedAt = disk.contents(of: segmentPath(1))!.count
    try writer.roll(time: 1_704_067_200_000)
    try writer.append(payload(3))
    directory.close()
    disk.overwrite(segmentPath(1), at: sealedAt, with: [UInt8](repeating: 0, count: 8))
    return disk
  }

  @Test("a missing seal is written again; a full disk leaves that to the next opening")
  func resealing() throws {
    for errno in [ENOSPC, EIO] {
      let disk = try Self.unsealed()
      let directory = try open(disk)
      let log = try #require(try read(directory))
      #expect(log.end.unsealed != nil)
      disk.inject(
        DiskFault(.error(errno), of: [.write], at: 1, pathPart: "00001"))
      if errno == EIO {
        #expect(throws: StorageError.self) { _ = try repairTail(directory, log.end) }
      } else {
        _ = try repairTail(directory, log.end)
      }
      directory.close()
      disk.removeFaults()
      #expect(try read(disk)?.entries.map(\.payload) == (0..<4).map { payload($0) })
    }
  }

  @Test("a follower that cannot open the rewritten segment says so, and goes on once it can")
  func followedIntoAnError() throws {
    let disk = SimulatedDisk(seed: 9)
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    directory.close()
    let reading = try openReadOnly(disk)
    defer { reading.close() }
    let segment = try SegmentReader(SegmentName(firstLSN: LogSequenceNumber(1)), in: reading)
    let (next, _, _) = try resume(disk)
    next.close()
    disk.inject(DiskFault(.error(EIO), of: [.open], at: 1))
    #expect(throws: StorageError.self) { try segment.refresh() }
    disk.removeFaults()
    try segment.refresh()
  }

  @Test("the checksum of a write that the log does not have is an error")
  func noSuchWrite() throws {
    let disk = SimulatedDisk(seed: 10)
    let directory = try open(disk)
    defer { directory.close() }
    let writer = try newLog(directory)
    for number in 0..<3 { try writer.append(payload(number)) }
    for lsn in 1...3 {
      #expect(try LogReader.checksum(directory, at: LogSequenceNumber(UInt64(lsn))) != 0)
    }
    let error = #expect(throws: StorageError.self) {
      try LogReader.checksum(directory, at: LogSequenceNumber(4))
    }
    guard case .corrupt(_, _, "the record of write 4", "no record") = error else {
      Issue.record("expected a missing record, found \(String(describing: error))")
      return
    }
  }
}
