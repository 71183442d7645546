import CDendroCurl

/// What one GET request has brought.
struct WebDocument: Sendable {
  let bytes: [UInt8]
  /// For how many seconds it may be used, as its answer says; nil if that does not say so.
  let maxAge: Int64?

  struct Failure: Error {
    let sentence: String
    init(_ sentence: String) { self.sentence = sentence }
  }

  /// libcurl; nil if it is not installed.
  ///
  /// Unchecked: the library may be used on any thread once it is open.
  private struct Library: @unchecked Sendable {
    let handle: UnsafeMutableRawPointer?
    static let shared = Library(handle: dendro_curl_open())
  }

  static var canFetch: Bool { Library.shared.handle != nil }

  /// Waits for the document, on the calling thread. Redirections are not followed.
  init(
    fetching address: WebAddress, byteLimit: Int, timeout: Duration,
    isCancelled: @escaping () -> Bool
  ) throws(Failure) {
    let transfer = Transfer(byteLimit: byteLimit, isCancelled: isCancelled)
    let (result, status, text) = Self.perform(address, timeout, transfer)
    if transfer.isTooLong { throw Failure("it has more than \(byteLimit) bytes") }
    guard result == 0 else { throw Failure(text) }
    guard status == 200 else { throw Failure("the answer has the status \(status)") }
    bytes = transfer.body
    maxAge = transfer.maxAge.map { max(0, $0 - transfer.age) }
  }

  private static func perform(
    _ address: WebAddress, _ timeout: Duration, _ transfer: Transfer
  ) -> (result: Int32, status: Int, text: String) {
    var request = dendro_curl_request()
    request.is_plain = address.isPlain ? 1 : 0
    request.milliseconds = Int(timeout / .milliseconds(1))
    request.context = Unmanaged.passUnretained(transfer).toOpaque()
    request.head = { bytes, size, count, transfer in
      Transfer.of(transfer).takeHead(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
    request.body = { bytes, size, count, transfer in
      Transfer.of(transfer).takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
    request.progress = { transfer, _, _, _, _ in Transfer.of(transfer).isCancelled() ? 1 : 0 }
    return withExtendedLifetime(transfer) {
      address.description.withCString { url in
        request.url = url
        let result = dendro_curl_perform(Library.shared.handle, &request)
        let text = withUnsafeBytes(of: request.error) { error in
          String(decoding: error.prefix { $0 != 0 }, as: UTF8.self)
        }
        return (result, request.status, text)
      }
    }
  }
}

/// What comes during a request, on the thread that waits for it.
private final class Transfer {
  let isCancelled: () -> Bool
  private let byteLimit: Int
  private(set) var body: [UInt8] = []
  private(set) var isTooLong = false
  private(set) var maxAge: Int64?
  /// Seconds for which caches have had the document.
  private(set) var age: Int64 = 0

  init(byteLimit: Int, isCancelled: @escaping () -> Bool) {
    self.byteLimit = byteLimit
    self.isCancelled = isCancelled
  }

  static func of(_ pointer: UnsafeMutableRawPointer?) -> Transfer {
    Unmanaged<Transfer>.fromOpaque(pointer.unsafelyUnwrapped).takeUnretainedValue()
  }

  func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard bytes.count <= byteLimit - body.count else {
      isTooLong = true
      return -1
    }
    body.append(contentsOf: bytes)
    return bytes.count
  }

  func takeHead(_ line: UnsafeRawBufferPointer) -> Int {
    let text = String(decoding: line, as: UTF8.self).lowercased()
    let parts = text.split(separator: ":", maxSplits: 1)
    guard parts.count == 2 else { return line.count }
    switch parts[0] {
    case "age": age = Self.seconds(parts[1]) ?? 0
    case "cache-control":
      for directive in parts[1].split(separator: ",") {
        let pair = directive.split(separator: "=", maxSplits: 1)
        if pair.count == 2, pair[0].filter({ $0 != " " }) == "max-age" {
          maxAge = Self.seconds(pair[1])
        }
      }
    default: break
    }
    return line.count
  }

  private static func seconds(_ text: Substring) -> Int64? {
    guard let value = Int64(text.filter { !$0.isWhitespace && $0 != "\"" }), value >= 0 else {
      return nil
    }
    return min(value, 1 << 32)
  }
}
