import DendroEngine
import DendroStorage
import DendroTree

/// A write that this server has passed on to the leader.
struct ForwardedWrite: Sendable {
  let number: UInt64
  let write: EncodedWrite
  /// As `EncodedWrite.keptBytes`.
  let bytes: [UInt8]
  let since: ContinuousClock.Instant
  /// The epoch of the leader that has it; nil if none may have it.
  var epoch: Int64?
  let completion: Completion
}

/// Writes as a row of requests holds them: for each its length, a varint, and its kept bytes.
enum RequestBody {
  static func encode(_ writes: ArraySlice<ForwardedWrite>) -> [UInt8] {
    var writer = ByteWriter()
    for write in writes {
      writer.varint(UInt64(write.bytes.count))
      write.bytes.withUnsafeBytes { writer.bytes($0) }
    }
    return Array(writer.bytes)
  }

  /// - Returns: nil unless the bytes are writes, so many.
  static func decode(_ bytes: [UInt8], count: Int64) -> [EncodedWrite]? {
    bytes.withUnsafeBytes { bytes in
      var reader = ByteReader(bytes)
      var writes: [EncodedWrite] = []
      while !reader.isAtEnd {
        guard let length = try? reader.varint(), length <= UInt64(reader.remaining),
          let taken = try? reader.bytes(Int(length)), let write = EncodedWrite(kept: Array(taken))
        else { return nil }
        writes.append(write)
      }
      return Int64(writes.count) == count ? writes : nil
    }
  }
}

/// What the leader says of a write that has got no number. One that has got a number is in the log, with its origin.
enum ForwardedAnswer: Hashable, Sendable {
  /// It has changed nothing.
  case nothing
  case tooLarge(bytes: Int64, limit: Int64)
  case memoryLimit(bytes: Int64, limit: Int64)
  case noData
  case refused(String)

  /// - Returns: nil if the write goes to the next leader.
  init?(_ error: EngineError) {
    switch error {
    // The leader leads no more.
    case .unavailable, .undecided, .closed, .poisoned, .forked, .readOnly: return nil
    case .writeTooLarge(let bytes, let limit):
      self = .tooLarge(bytes: Int64(bytes), limit: Int64(limit))
    case .memoryLimit(let bytes, let limit):
      self = .memoryLimit(bytes: Int64(bytes), limit: Int64(limit))
    case .noData: self = .noData
    default: self = .refused(error.description)
    }
  }

  /// As a row holds it.
  var fields: (kind: Int64, first: Int64, second: Int64, text: String) {
    switch self {
    case .nothing: (0, 0, 0, "")
    case .tooLarge(let bytes, let limit): (1, bytes, limit, "")
    case .memoryLimit(let bytes, let limit): (2, bytes, limit, "")
    case .noData: (3, 0, 0, "")
    case .refused(let text): (4, 0, 0, text)
    }
  }

  init(kind: Int64, first: Int64, second: Int64, text: String) {
    switch kind {
    case 0: self = .nothing
    case 1: self = .tooLarge(bytes: first, limit: second)
    case 2: self = .memoryLimit(bytes: first, limit: second)
    case 3: self = .noData
    default: self = .refused(text)
    }
  }

  func result(of write: EncodedWrite) -> Result<LogSequenceNumber?, EngineError> {
    switch self {
    case .nothing: .success(nil)
    case .tooLarge(let bytes, let limit):
      .failure(.writeTooLarge(bytes: Int(bytes), limit: Int(limit)))
    case .memoryLimit(let bytes, let limit):
      .failure(.memoryLimit(bytes: Int(bytes), limit: Int(limit)))
    case .noData: .failure(.noData(write.path))
    case .refused(let text): .failure(.unavailable(text))
    }
  }
}
