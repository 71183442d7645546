import DendroStorage

// What is printed of the parity of a file.

extension Mending {
  /// Whether the file, or its parity, is not as it was.
  var isDamage: Bool {
    switch state {
    case .good, .stale: false
    case .mends, .exceeded, .other, .damaged: true
    }
  }

  /// What is wrong, line by line.
  var messages: [String] {
    let blocks = Format.count(damagedBlockCount, "block")
    let place = "\(path), offset \(damaged.first?.lowerBound ?? 0): \(blocks)"
    var messages: [String] = []
    switch state {
    case .mends:
      messages.append("\(place) not as before; \(parityPath) mends all of it")
    case .exceeded:
      let mended = mendedBlockCount == 0 ? "none" : Format.count(mendedBlockCount)
      messages.append("\(place) not as before, of which \(parityPath) mends \(mended)")
    case .other:
      messages.append("\(parityPath) is of other bytes than those of \(path), and is not used")
    case .good, .stale, .damaged: break
    }
    return messages + problems.map { "\($0)" }
  }

  /// What is said of parity that is older than its file; nil if it is not.
  var remark: String? {
    guard state == .stale, let coveredByteCount else { return nil }
    return "\(parityPath) covers the first \(Format.bytes(coveredByteCount)); more came later"
  }

  /// What a repair says that has used it; nil if it has not.
  var mendedText: String? {
    guard mendedBlockCount > 0, let first = mended.first else { return nil }
    let byteCount = mended.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
    return "\(Format.count(mendedBlockCount, "block")) of \(path), \(Format.bytes(byteCount)) "
      + "from offset \(first.lowerBound) on, by \(parityPath)"
  }

  var json: JSONValue {
    .object([
      ("file", .string(path)), ("parityFile", .string(parityPath)),
      ("state", .string(state.rawValue)),
      ("coveredBytes", coveredByteCount.map { .unsigned($0) } ?? .null),
      ("damagedBlocks", .count(damagedBlockCount)), ("mendedBlocks", .count(mendedBlockCount)),
      (
        "mended",
        .array(
          mended.map { range in
            .object([
              ("offset", .unsigned(range.lowerBound)),
              ("bytes", .unsigned(range.upperBound - range.lowerBound)),
            ])
          })
      ),
      ("problems", .array(problems.map { .string("\($0)") })),
    ])
  }
}

extension [Mending] {
  /// Those of which there is something to say.
  var json: JSONValue { .array(filter { $0.state != .good }.map(\.json)) }
}
