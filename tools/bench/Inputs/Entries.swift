/// Keys and values as bytes, which are made before a measurement and stay until the process ends.
///
/// They lie in one piece of memory, so that a peer gets them without a reference count being touched.
///
/// Never changed after its creation, hence `@unchecked Sendable`.
struct Entries: @unchecked Sendable {
  let count: Int
  private let bytes: UnsafeMutableRawBufferPointer
  /// Where each key ends, and each value.
  private let ends: UnsafeMutableBufferPointer<Int>

  init(_ pairs: [(key: [UInt8], value: [UInt8])]) {
    count = pairs.count
    bytes = .allocate(
      byteCount: pairs.reduce(1) { $0 + $1.key.count + $1.value.count }, alignment: 16)
    ends = .allocate(capacity: pairs.count * 2)
    var end = 0
    for (index, pair) in pairs.enumerated() {
      for (part, content) in [pair.key, pair.value].enumerated() {
        UnsafeMutableRawBufferPointer(rebasing: bytes[end...]).copyBytes(from: content)
        end += content.count
        ends.initializeElement(at: index * 2 + part, to: end)
      }
    }
  }

  init(keys: [String], values: [String]) {
    self.init(zip(keys, values).map { (Array($0.utf8), Array($1.utf8)) })
  }

  func key(_ index: Int) -> Bytes { part(index * 2) }

  func value(_ index: Int) -> Bytes { part(index * 2 + 1) }

  private func part(_ number: Int) -> Bytes {
    let start = number == 0 ? 0 : ends[number - 1]
    return Bytes(
      start: UnsafeRawPointer(bytes.baseAddress.unsafelyUnwrapped) + start,
      count: ends[number] - start)
  }
}

/// A number as the eight bytes that peers store.
struct StoredNumber {
  var value: Int64

  init(_ value: Int64) { self.value = value }

  /// 0 if there is no number.
  init(_ bytes: Bytes?) {
    value = bytes.flatMap { $0.count == 8 ? $0.loadUnaligned(as: Int64.self) : nil } ?? 0
  }

  func withBytes<E: Error>(_ body: (Bytes) throws(E) -> Void) throws(E) {
    try withUnsafeBytes(of: value) { bytes throws(E) in try body(bytes) }
  }
}
