import DendroStorage

/// Texts with names, as bytes: of each the number of bytes of its name, these, and the same of its text.
///
/// A request has a few, so they are looked for one after the other.
struct PassedOnFields {
  private var fields: [(name: String, text: String)] = []

  init() {}

  /// - Returns: nil unless the bytes are fields.
  init?(_ bytes: [UInt8]) {
    let fields = bytes.withUnsafeBytes { bytes -> [(name: String, text: String)]? in
      var reader = ByteReader(bytes)
      return try? Self.read(&reader)
    }
    guard let fields else { return nil }
    self.fields = fields
  }

  private static func read(
    _ reader: inout ByteReader
  ) throws(ByteError) -> [(name: String, text: String)] {
    func text() throws(ByteError) -> String {
      let count = Int(clamping: try reader.varint())
      return String(decoding: try reader.bytes(count), as: UTF8.self)
    }
    var fields: [(name: String, text: String)] = []
    while !reader.isAtEnd { fields.append((try text(), try text())) }
    return fields
  }

  subscript(name: String) -> String? {
    get { fields.first { $0.name == name }?.text }
    set {
      fields.removeAll { $0.name == name }
      if let newValue { fields.append((name, newValue)) }
    }
  }

  var bytes: [UInt8] {
    var writer = ByteWriter()
    func write(_ text: String) {
      var text = text
      text.withUTF8 { utf8 in
        writer.varint(UInt64(utf8.count))
        writer.bytes(UnsafeRawBufferPointer(utf8))
      }
    }
    for (name, text) in fields {
      write(name)
      write(text)
    }
    return Array(writer.bytes)
  }
}
