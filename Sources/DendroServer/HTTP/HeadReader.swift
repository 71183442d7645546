import CDendroMicroHTTPD
import DendroProtocol

/// Reads the head of a request out of libmicrohttpd's buffer, and finds what the library hides.
///
/// The library puts a NUL behind every text in its buffer and knows texts by their beginnings. So a NUL that a client has
/// sent hides what stands behind it in a method, a target or a field; a line may end in a bare LF; and a folded line is put
/// behind the name of its field. Other servers on the way may read such a head differently. All of that shows in where the
/// texts lie: in a head that is well formed each begins at a known distance from the end of the one before.
struct HeadReader {
  private(set) var headers = HTTPHeaders()
  /// Whether each text is where it has to be, and made of what such a text may have.
  private(set) var isIntact: Bool
  /// Where the next line has to begin.
  private var next: UnsafePointer<CChar>

  /// Whether the library is the release whose buffer this reads. Later ones refuse such heads by themselves in their strict
  /// mode, and may lay out their buffer in another way.
  static let isLayoutKnown = String(cString: MHD_get_version()) == "0.9.75"

  /// The texts of the request line, which lie in the buffer.
  struct Line {
    let method: UnsafePointer<CChar>
    let target: UnsafePointer<CChar>
    let version: UnsafePointer<CChar>
  }

  /// - Parameter targetByteCount: as it was before the library has decoded the target in its place.
  init(_ line: Line, targetByteCount: Int, of connection: OpaquePointer) {
    let methodByteCount = Self.byteCount(line.method)
    isIntact =
      UnsafeBufferPointer(start: line.method, count: methodByteCount).allSatisfy(Self.isOfToken)
      && line.method + methodByteCount + 1 == line.target
      && line.target + targetByteCount + 1 == line.version
    next = line.version + Self.byteCount(line.version) + 2
    withUnsafeMutablePointer(to: &self) { reader in
      _ = MHD_get_connection_values_n(
        connection, dendro_header_kind,
        { reader, _, name, nameCount, value, valueCount in
          guard let reader, let name, let value else { return dendro_yes }
          reader.assumingMemoryBound(to: HeadReader.self).pointee.take(
            UnsafeBufferPointer(start: name, count: nameCount),
            UnsafeBufferPointer(start: value, count: valueCount))
          return dendro_yes
        }, reader)
    }
    // Behind the last field is an empty line.
    if line.method + dendro_head_size(connection) != next + 2 { isIntact = false }
    if !Self.isLayoutKnown { isIntact = true }
  }

  private mutating func take(
    _ name: UnsafeBufferPointer<CChar>, _ value: UnsafeBufferPointer<CChar>
  ) {
    guard let nameStart = name.baseAddress, let valueStart = value.baseAddress else { return }
    headers.append(Self.text(name), Self.text(value))
    guard isIntact else { return }
    let gap = nameStart + name.count + 1
    isIntact =
      nameStart == next && !name.isEmpty && name.allSatisfy(Self.isOfToken)
      && gap <= valueStart && valueStart - gap < 1 << 16
      && UnsafeBufferPointer(start: gap, count: valueStart - gap).allSatisfy(Self.isSpace)
      && value.allSatisfy(Self.isOfValue)
    next = valueStart + value.count + 2
  }

  // MARK: Texts

  private static func text(_ bytes: UnsafeBufferPointer<CChar>) -> String {
    bytes.withMemoryRebound(to: UInt8.self) { String(decoding: $0, as: UTF8.self) }
  }

  private static func byteCount(_ text: UnsafePointer<CChar>) -> Int {
    var end = text
    while end.pointee != 0 { end += 1 }
    return end - text
  }

  private static func isSpace(_ byte: CChar) -> Bool { byte == 0x20 || byte == 0x09 }

  /// Whether a value may have the byte: all but control characters.
  private static func isOfValue(_ byte: CChar) -> Bool {
    let byte = UInt8(bitPattern: byte)
    return byte >= 0x20 && byte != 0x7F || byte == 0x09
  }

  private static func isOfToken(_ byte: CChar) -> Bool {
    HTTPHeaders.isOfName(UInt8(bitPattern: byte))
  }
}
