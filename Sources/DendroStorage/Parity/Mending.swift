/// What the parity of a file says of the file, and which of its blocks that mends.
package struct Mending: Sendable {
  package enum State: String, Sendable {
    /// The file is as it was when its parity was written.
    case good
    /// So is as much of it as there was then; more has come behind that.
    case stale
    /// Blocks are damaged, and all of them are mended.
    case mends
    /// Not all of them are.
    case exceeded
    /// The parity is of other bytes. It is not used.
    case other
    /// The parity file is damaged; what is left of it shows no damage of the file.
    case damaged
  }

  /// The path of the file.
  package let path: String
  package let parityPath: String
  /// The length that the file had when its parity was written; nil if that cannot be read.
  package private(set) var coveredByteCount: UInt64?
  /// What is wrong with the parity file itself.
  package private(set) var problems: [LogCursor.Problem] = []
  /// The bytes of the damaged blocks, ascending and apart.
  package private(set) var damaged: [Range<UInt64>] = []
  /// The bytes of those that are mended.
  package private(set) var mended: [Range<UInt64>] = []
  package private(set) var damagedBlockCount = 0
  package private(set) var mendedBlockCount = 0
  /// Whether the parity is of other bytes.
  package private(set) var isOfOther = false
  private var isStale = false
  private(set) var mendedFile: MendedFile?
  /// The bytes at the end that the file had once, has no longer, and that cannot be given back; nil if a record has no room
  /// in them.
  package private(set) var lostEnd: Range<UInt64>?

  /// Where the block begins with which the file ended, if it is damaged or missing and not mended; nil if not, or if nothing but
  /// a seal can be missing.
  private(set) var unmendedEnd: UInt64?

  package var state: State {
    if isOfOther { return .other }
    if damagedBlockCount > 0 {
      return mendedBlockCount == damagedBlockCount ? .mends : .exceeded
    }
    if !problems.isEmpty { return .damaged }
    return isStale ? .stale : .good
  }

  /// Compares a file with its parity. Nothing is changed.
  ///
  /// A block is mended if the parity block and the others for which that stands are as they were, and the result has
  /// the checksum that the block had. If the file's own format proves a byte right that differs from what the parity
  /// says, the parity is of other bytes, and nothing is mended.
  ///
  /// - Throws: `.io`.
  /// - Complexity: O(bytes of the file and of its parity).
  init(of name: String, in directory: DatabaseDirectory) throws(StorageError) {
    path = directory.path + "/" + name
    parityPath = directory.path + "/" + FileName.parityName(of: name)
    let parity: ParityFile
    do throws(StorageError) {
      parity = try ParityFile(parityPath, directory.fileSystem)
    } catch {
      problems.append(try Self.problem(error, parityPath))
      return
    }
    let file = try CoveredFile(path, parity, directory.fileSystem)
    coveredByteCount = parity.layout.coveredByteCount
    isStale = file.byteCount > parity.layout.coveredByteCount
    if try Self.isOther(file) {
      isOfOther = true
      return
    }
    noteProblems(try file.damagedParityBlocks(), of: parity)
    let blocks = try file.damagedBlocks()
    let mendable = try Self.mendable(blocks, of: file)
    damagedBlockCount = blocks.count
    mendedBlockCount = mendable.count
    damaged = Self.ranges(of: blocks, parity.layout)
    guard !blocks.isEmpty else { return }
    let covered = parity.layout.coveredByteCount
    // A seal alone is no write.
    if file.byteCount + UInt64(RecordHeader.byteCountMin) < covered, mendable.last != blocks.last {
      lostEnd = file.byteCount..<covered
    }
    let last = Self.ranges(of: blocks.suffix(1), parity.layout).last
    if let last, last.upperBound >= covered, mendable.last != blocks.last,
      lostEnd != nil || file.byteCount >= covered
    {
      unmendedEnd = last.lowerBound
    }
    if try Self.changesProven(blocks, mendable, of: file, name, directory) {
      isOfOther = true
      mendedBlockCount = 0
      lostEnd = nil
      unmendedEnd = nil
      return
    }
    guard !mendable.isEmpty else { return }
    mended = Self.ranges(of: mendable, parity.layout)
    mendedFile = MendedFile(file, blocks: mendable)
  }

  private static func problem(
    _ error: StorageError, _ path: String
  ) throws(StorageError) -> LogCursor.Problem {
    switch error {
    case .corrupt(let path, let offset, let expected, let found):
      return LogCursor.Problem(path: path, offset: offset, expected: expected, found: found)
    case .unsupportedVersion, .unsupportedFeatures:
      return LogCursor.Problem(
        path: path, offset: 8, expected: "a format that this version reads",
        found: "that of a newer one")
    case .io(_, _, let offset, .inputOutput):
      return LogCursor.Problem(
        path: path, offset: offset ?? 0, expected: "bytes", found: "none that can be read")
    default: throw error
    }
  }

  private mutating func noteProblems(_ blocks: [UInt64], of parity: ParityFile) {
    var index = 0
    while index < blocks.count {
      let first = blocks[index]
      let run = blocks[index...].enumerated().prefix { $1 == first + UInt64($0) }.count
      index += run
      problems.append(
        LogCursor.Problem(
          path: parityPath, offset: parity.layout.offset(ofParityBlock: first),
          expected: run == 1 ? "parity block \(first)" : "\(run) parity blocks from \(first) on",
          found: "other bytes"))
    }
  }

  /// Whether the file's header is right, and another one than that of the file of which the parity was made.
  private static func isOther(_ file: CoveredFile) throws(StorageError) -> Bool {
    let head: [UInt8]
    do throws(StorageError) {
      head = try ParityHeader.head(of: file.file, path: file.path)
    } catch {
      if case .io(_, _, _, .inputOutput) = error { return false }
      throw error
    }
    guard head != file.parity.header.head else { return false }
    return head.withUnsafeBytes { bytes in
      (try? SegmentHeader(decoding: bytes, path: file.path)) != nil
        || (try? CheckpointHeader(decoding: bytes, path: file.path)) != nil
    }
  }

  /// Those of the damaged blocks that can be made from others.
  private static func mendable(
    _ damaged: [UInt64], of file: CoveredFile
  ) throws(StorageError) -> [UInt64] {
    var counts: [UInt64: Int] = [:]
    for block in damaged { counts[file.layout.parityBlock(of: block), default: 0] += 1 }
    var buffer = RawBuffer()
    buffer.reserve(ParityLayout.blockByteCount)
    var mendable: [UInt64] = []
    for block in damaged where counts[file.layout.parityBlock(of: block)] == 1 {
      if try file.mend(block, into: buffer.base) { mendable.append(block) }
    }
    return mendable
  }

  /// Whether the parity would change a byte that the file's own format proves right.
  ///
  /// A segment whose end was taken back has other records in place of those for which the parity was made, and
  /// a checkpoint that was written once more is another file under its name.
  private static func changesProven(
    _ damaged: [UInt64], _ mendable: [UInt64], of file: CoveredFile, _ name: String,
    _ directory: DatabaseDirectory
  ) throws(StorageError) -> Bool {
    let proven = try ProvenBytes(of: name, in: directory)
    let mendable = Set(mendable)
    var old = RawBuffer()
    var new = RawBuffer()
    old.reserve(ParityLayout.blockByteCount)
    new.reserve(ParityLayout.blockByteCount)
    for block in damaged {
      let range = file.layout.range(ofBlock: block)
      let parts = proven.parts(of: range)
      if parts == [range] { return true }
      guard !parts.isEmpty, mendable.contains(block) else { continue }
      _ = try file.readBlock(block, into: old.base)
      guard try file.mend(block, into: new.base) else { continue }
      for part in parts {
        let (start, end) = (
          Int(part.lowerBound - range.lowerBound), Int(part.upperBound - range.lowerBound)
        )
        let isSame = (start..<end).allSatisfy {
          old.base.load(fromByteOffset: $0, as: UInt8.self)
            == new.base.load(fromByteOffset: $0, as: UInt8.self)
        }
        if !isSame { return true }
      }
    }
    return false
  }

  private static func ranges(of blocks: [UInt64], _ layout: ParityLayout) -> [Range<UInt64>] {
    var ranges: [Range<UInt64>] = []
    for block in blocks {
      let range = layout.range(ofBlock: block)
      if let last = ranges.last, last.upperBound == range.lowerBound {
        ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
      } else {
        ranges.append(range)
      }
    }
    return ranges
  }
}
