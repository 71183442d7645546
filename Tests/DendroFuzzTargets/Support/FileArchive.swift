import DendroEngine

/// A directory as an input: one byte of flags, then for each file a byte with its kind, one with its
/// number, two with its length, and its bytes.
struct FileArchive {
  enum Kind: UInt8, CaseIterable {
    case segment, checkpoint, lock, readersLock, torn, unfinished, foreign
  }

  static let fileMax = 8

  var files: [(kind: Kind, number: UInt8, bytes: [UInt8])] = []
  var isMended = false
  var isChained = false

  init(_ files: [(name: String, bytes: [UInt8])], isMended: Bool = false) {
    self.isMended = isMended
    isChained = isMended
    for file in files {
      let number = UInt8(truncatingIfNeeded: UInt64(file.name.prefix(20)) ?? 0)
      let kind: Kind? =
        switch file.name {
        case "dendro.lock": .lock
        case "readers.lock": nil
        case let name where name.hasSuffix(".log"): .segment
        case let name where name.hasSuffix(".checkpoint"): .checkpoint
        default: nil
        }
      if let kind { self.files.append((kind, number, file.bytes)) }
    }
  }

  init(_ files: [(kind: Kind, number: UInt8, bytes: [UInt8])], isMended: Bool) {
    self.files = files
    self.isMended = isMended
    isChained = isMended
  }

  init(_ bytes: UnsafeRawBufferPointer) {
    var input = FuzzInput(bytes)
    let flags = input.uint8()
    isMended = flags & 1 != 0
    isChained = flags & 2 != 0
    while !input.isAtEnd, files.count < Self.fileMax {
      let kind = Kind.allCases[Int(input.uint8()) % Kind.allCases.count]
      let number = input.uint8()
      files.append((kind, number, input.bytes(Int(input.uint16()))))
    }
  }

  var encoded: [UInt8] {
    var output = FuzzOutput()
    output.uint8((isMended ? 1 : 0) | (isChained ? 2 : 0))
    for file in files {
      output.uint8(file.kind.rawValue)
      output.uint8(file.number)
      output.uint16(UInt16(clamping: file.bytes.count))
      output.append(file.bytes.prefix(Int(UInt16.max)))
    }
    return output.bytes
  }

  /// Names and contents, mended if the flags say so.
  var contents: [(name: String, bytes: [UInt8])] {
    var files = files
    if isMended {
      let places = files.indices.filter { files[$0].kind == .segment }
        .sorted { files[$0].number < files[$1].number }
      var log = places.map { (lsn: UInt64(files[$0].number), bytes: files[$0].bytes) }
      Mending.log(&log, chained: isChained)
      for (place, segment) in zip(places, log) { files[place].bytes = segment.bytes }
      let id = log.first.flatMap { $0.bytes.count >= 32 ? Array($0.bytes[16..<32]) : nil }
      for place in files.indices where files[place].kind == .checkpoint {
        if isChained, let id, files[place].bytes.count >= 160 {
          files[place].bytes.replaceSubrange(16..<32, with: id)
          files[place].bytes.set(UInt64(files[place].number), at: 40)
          files[place].bytes.set(UInt64(files[place].number), at: files[place].bytes.count - 16)
          let next = log.first { $0.lsn == UInt64(files[place].number) + 1 }
          if let checksum = next?.bytes.integer(at: 56, as: UInt32.self) {
            files[place].bytes.set(checksum, at: 56)
          }
        }
        Mending.checkpoint(&files[place].bytes)
      }
    }
    return files.map { (name($0.kind, $0.number), $0.bytes) }
  }

  private func name(_ kind: Kind, _ number: UInt8) -> String {
    let segment = FuzzDisk.segment(UInt64(number))
    switch kind {
    case .segment: return segment
    case .checkpoint: return FuzzDisk.checkpoint(UInt64(number))
    case .lock: return "dendro.lock"
    case .readersLock: return "readers.lock"
    case .torn: return segment + ".torn-\(number)"
    case .unfinished: return (number % 2 == 0 ? segment : FuzzDisk.checkpoint(1)) + ".tmp"
    case .foreign: return "foreign-\(number)"
    }
  }
}

/// Nothing happens but what is asked for, on the thread that asks.
let fuzzOptions: EngineOptions = {
  var options = EngineOptions()
  options.execution = .inline
  options.checkpointFactor = 0
  return options
}()
