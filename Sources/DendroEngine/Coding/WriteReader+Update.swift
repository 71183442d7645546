import DendroStorage
import DendroTree

extension WriteReader {
  /// Applies the entries of an update straight from their bytes, where all of them set or increment leaves, and
  /// come in ascending order. Nothing is applied before all of them were checked.
  ///
  /// - Parameters:
  ///   - base: the path of the update.
  ///   - root: the tree, which is not changed where the result is false.
  ///   - isNew: whether the tree does not have the update yet.
  ///   - location: nil to apply every entry; otherwise only those that concern it are applied.
  /// - Returns: false where there are other entries; nothing was read then.
  mutating func applyLeaves(
    below base: Path, to root: inout Node, isNew: Bool, concerning location: ReplayLocation?
  ) throws(CodingError) -> Bool {
    var scan = reader
    guard try Self.areLeavesInOrder(&scan, depth: Limits.depth - base.count) else { return false }
    if isNew { try apply(below: base, to: &root, concerning: location) }
    reader = scan
    return true
  }

  /// Reads the update's body, and checks it.
  private static func areLeavesInOrder(
    _ reader: inout ByteReader, depth: Int
  ) throws(CodingError) -> Bool {
    let count = try entryCount(&reader)
    var paths = PathReader()
    for index in 0..<count {
      let kind = try reader.tag("an entry's kind")
      _ = try paths.readBytes(&reader)
      let isGood =
        paths.countKeys().map { $0 <= depth } ?? false && (index == 0 || paths.isBehindLast)
      // The usual decoding says what is wrong, if anything is.
      guard isGood else { return false }
      switch kind {
      case WriteCoding.Kind.set:
        guard let end = PackedScalar.end(validating: reader.bytes, at: reader.offset) else {
          return false
        }
        _ = try reader.take(end - reader.offset, "a packed leaf")
      case WriteCoding.Kind.increment: _ = try ScalarCoding.decodeNumber(&reader)
      default: return false
      }
    }
    return true
  }

  private mutating func apply(
    below base: Path, to root: inout Node, concerning location: ReplayLocation?
  ) throws(CodingError) {
    let count = try Self.entryCount(&reader)
    var paths = PathReader(below: base)
    for _ in 0..<count {
      let kind = try reader.tag("an entry's kind")
      _ = try paths.readBytes(&reader)
      if let location, !location.isConcerned(by: paths.wholeBytes) {
        try skipAction(kind)
        continue
      }
      if kind == WriteCoding.Kind.set {
        guard let end = PackedScalar.end(validating: reader.bytes, at: reader.offset) else {
          throw CodingError(expected: "a packed leaf", found: reader.nextBytes)
        }
        let leaf = try reader.take(end - reader.offset, "a packed leaf")
        if try exchange(.set(leaf), at: paths.wholeBytes, in: &root) == .declined {
          try apply(.set(try paths.wholePath(), Node(packedLeaf: leaf)), to: &root)
        }
      } else {
        let delta = try ScalarCoding.decodeNumber(&reader)
        if try exchange(.increment(delta), at: paths.wholeBytes, in: &root) == .declined {
          try apply(.increment(try paths.wholePath(), delta), to: &root)
        }
      }
    }
  }

  /// Applies a write, after the pages that it needs have been read.
  mutating func apply(
    _ write: Write, to root: inout Node, recording changes: inout [Change]
  ) throws(CodingError) {
    cursor.forget()
    do throws(PageFailure) {
      try root.load(for: Draft(write))
    } catch {
      throw unreadable(error)
    }
    root.apply(write, recording: &changes)
  }

  mutating func apply(_ write: Write, to root: inout Node) throws(CodingError) {
    var changes: [Change] = []
    try apply(write, to: &root, recording: &changes)
  }

  mutating func exchange(
    _ edit: LeafEdit, at storedPath: UnsafeRawBufferPointer, in root: inout Node
  ) throws(CodingError) -> LeafEdit.Outcome {
    do throws(PageFailure) {
      return try root.loadAndExchange(edit, at: storedPath, &cursor)
    } catch {
      throw unreadable(error)
    }
  }
}
