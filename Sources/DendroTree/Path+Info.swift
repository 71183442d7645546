extension Key {
  /// `.info`. It is not a legal key, so no write can reach data below it.
  package static let info = Array(".info".utf8).withUnsafeBytes { Key(trustedOrderedBytes: $0) }
}

extension Path {
  /// `/.info`, the location of the database's state, such as whether it is connected. It is not part of the
  /// data.
  package static let info = Path.root.appending(Key.info)

  /// Whether the path is `/.info` or below it.
  package var isInfo: Bool {
    // Asked at each read: no legal key begins with a dot, and no length is two bytes of which that is the second.
    storedBytes.count > 1 && storedBytes[1] == UInt8(ascii: ".")
  }
}
