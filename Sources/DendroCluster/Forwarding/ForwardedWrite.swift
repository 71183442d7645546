import DendroEngine
import DendroStorage
import DendroTree

/// A write, or what a client asks for, that this server has passed on to the leader.
struct ForwardedWrite: Sendable {
  let number: UInt64
  let content: Content
  /// As a row of requests holds it.
  let bytes: [UInt8]
  /// Under which it will be in the log.
  let origin: WriteOrigin
  let since: ContinuousClock.Instant
  /// The epoch of the leader that has it; nil if none may have it.
  var epoch: Int64?
  let completion: SharedRequestCompletion
  /// Whether it was sent over a line that has ended, to the leader of this epoch, who may have it.
  var wasOnLostLine = false
  /// Whether its client was told that it may be made or not.
  var isGivenUp = false

  /// Whether it waits for as long as it takes.
  var isPatient: Bool {
    if case .request(let request) = content { request.isPatient } else { false }
  }

  /// Says what has become of it.
  func end(_ outcome: SharedRequestOutcome, _ data: Node?) {
    if !isGivenUp { completion(outcome, data) }
  }

  enum Content: Sendable {
    case write(EncodedWrite)
    /// What a transaction makes.
    case result(EncodedWrite, of: TransactionInput)
    case request(SharedRequest)
  }

  /// The write with its completion; nil if it is a request.
  var asWrite: (write: EncodedWrite, completion: Completion)? {
    guard case .write(let write) = content else { return nil }
    return (
      write,
      { result in
        switch result {
        case .success(let lsn): end(.made(lsn), nil)
        case .failure(let error): end(.failed(error), nil)
        }
      }
    )
  }
}

extension ForwardedWrite.Content {
  /// As a row of requests holds it: the change of the data, that of the second root, and what the handler has to know, each
  /// after its length, a varint. One that is missing is empty. What a transaction makes has its input in place of the change
  /// of the second root, and a byte for the handler.
  var bytes: [UInt8] {
    var writer = ByteWriter()
    switch self {
    case .write(let write):
      writer.counted(write.keptBytes)
      writer.counted(write.system?.keptBytes ?? [])
      writer.counted([])
    case .result(let write, let input):
      writer.counted(write.keptBytes)
      writer.counted(input.hash)
      writer.counted([Self.resultMark])
    case .request(let request):
      writer.counted(request.write.keptBytes)
      writer.counted([])
      writer.counted(request.context)
    }
    return Array(writer.bytes)
  }

  private static let resultMark: UInt8 = 1

  var path: Path {
    switch self {
    case .write(let write), .result(let write, _): write.path
    case .request(let request): request.write.path
    }
  }

  /// - Returns: nil unless the bytes are one.
  init?(_ reader: inout ByteReader) {
    guard let data = try? reader.counted(), let system = try? reader.counted(),
      let context = try? reader.counted(),
      let write = EncodedWrite(kept: data)
    else { return nil }
    guard context.isEmpty else {
      if !system.isEmpty {
        guard context == [Self.resultMark], system.count == TransactionInput.hashByteCount else {
          return nil
        }
        self = .result(write, of: TransactionInput(hash: system))
        return
      }
      self = .request(SharedRequest(write, context: context))
      return
    }
    if system.isEmpty {
      self = .write(write)
    } else {
      guard let change = EncodedWrite(kept: system, allowing: .bytes) else { return nil }
      self = .write(EncodedWrite(write, system: change))
    }
  }
}

/// What a row of requests holds, one after the other.
enum RequestBody {
  static func encode(_ writes: ArraySlice<ForwardedWrite>) -> [UInt8] { writes.flatMap(\.bytes) }

  /// - Returns: nil unless the bytes are so many.
  static func decode(_ bytes: [UInt8], count: Int64) -> [ForwardedWrite.Content]? {
    bytes.withUnsafeBytes { bytes in
      var reader = ByteReader(bytes)
      var contents: [ForwardedWrite.Content] = []
      while !reader.isAtEnd {
        guard let content = ForwardedWrite.Content(&reader) else { return nil }
        contents.append(content)
      }
      return Int64(contents.count) == count ? contents : nil
    }
  }
}

/// What the leader says of what has got no number. What has got a number is in the log, with its origin.
enum ForwardedAnswer: Hashable, Sendable {
  /// It has changed nothing, or was made before.
  case nothing
  case tooLarge(bytes: Int64, limit: Int64)
  case memoryLimit(bytes: Int64, limit: Int64)
  case noData
  case refused(String)
  /// The handler of requests says it.
  case answered([UInt8])
  /// What a transaction was made from is not there any more.
  case stale

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
  var fields: (kind: Int64, first: Int64, second: Int64, body: [UInt8]) {
    switch self {
    case .nothing: (0, 0, 0, [])
    case .tooLarge(let bytes, let limit): (1, bytes, limit, [])
    case .memoryLimit(let bytes, let limit): (2, bytes, limit, [])
    case .noData: (3, 0, 0, [])
    case .refused(let text): (4, 0, 0, Array(text.utf8))
    case .answered(let body): (5, 0, 0, body)
    case .stale: (6, 0, 0, [])
    }
  }

  init(kind: Int64, first: Int64, second: Int64, body: [UInt8]) {
    switch kind {
    case 0: self = .nothing
    case 1: self = .tooLarge(bytes: first, limit: second)
    case 2: self = .memoryLimit(bytes: first, limit: second)
    case 3: self = .noData
    case 5: self = .answered(body)
    case 6: self = .stale
    default: self = .refused(String(decoding: body, as: UTF8.self))
    }
  }

  func outcome(of content: ForwardedWrite.Content) -> SharedRequestOutcome {
    switch self {
    case .nothing: .made(nil)
    case .tooLarge(let bytes, let limit):
      .failed(.writeTooLarge(bytes: Int(bytes), limit: Int(limit)))
    case .memoryLimit(let bytes, let limit):
      .failed(.memoryLimit(bytes: Int(bytes), limit: Int(limit)))
    case .noData: .failed(.noData(content.path))
    case .refused(let text): .failed(.unavailable(text))
    case .answered(let body): .answered(body)
    case .stale: .stale
    }
  }
}
