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
  /// - Returns: false where there are other entries; nothing was read then.
  mutating func applyLeaves(
    below base: Path, to root: inout Node, isNew: Bool
  ) throws(CodingError) -> Bool {
    var scan = reader
    guard try Self.areLeavesInOrder(&scan, depth: Limits.depth - base.count) else { return false }
    if isNew { try apply(below: base, to: &root) }
    reader = scan
    return true
  }

  /// Reads the update's body, and checks it.
  private static func areLeavesInOrder(
    _ reader: inout ByteReader, depth: Int
  ) throws(CodingError) -> Bool {
    let count = try entryCount(&reader)
    var paths = PathReader()
    var previous: [UInt8] = []
    for index in 0..<count {
      let kind = try reader.tag("an entry's kind")
      previous.removeAll(keepingCapacity: true)
      previous.append(contentsOf: paths.bytes)
      _ = try paths.readBytes(&reader)
      let isGood = paths.bytes.withUnsafeBytes { path in
        guard let keyCount = Path.keyCount(validating: path), keyCount <= depth else {
          return false
        }
        return index == 0
          || previous.withUnsafeBytes { previous in
            Path.storedBytes(previous, precede: path)
              && PathCoding.sharedPrefixCount(previous, path) < previous.count
          }
      }
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
    below base: Path, to root: inout Node
  ) throws(CodingError) {
    let count = try Self.entryCount(&reader)
    var paths = PathReader()
    var whole: [UInt8] = base.storedBytes
    let baseByteCount = whole.count
    for _ in 0..<count {
      let kind = try reader.tag("an entry's kind")
      _ = try paths.readBytes(&reader)
      whole.removeLast(whole.count - baseByteCount)
      whole.append(contentsOf: paths.bytes)
      let outcome: LeafEdit.Outcome
      let write: (Path) -> Write
      if kind == WriteCoding.Kind.set {
        guard let end = PackedScalar.end(validating: reader.bytes, at: reader.offset) else {
          throw CodingError(expected: "a packed leaf", found: reader.nextBytes)
        }
        let leaf = try reader.take(end - reader.offset, "a packed leaf")
        outcome = try load { () throws(PageFailure) in
          try root.loadAndExchange(.set(leaf), at: whole)
        }
        write = { .set($0, Node(packedLeaf: leaf)) }
      } else {
        let delta = try ScalarCoding.decodeNumber(&reader)
        outcome = try load { () throws(PageFailure) in
          try root.loadAndExchange(.increment(delta), at: whole)
        }
        write = { .increment($0, delta) }
      }
      guard outcome == .declined else { continue }
      guard let path = whole.withUnsafeBytes({ Path(storedBytes: $0) }) else {
        throw CodingError(expected: "a path", found: "bytes that are no path's")
      }
      _ = root.apply(write(path))
    }
  }
}
