extension Key {
  /// `.info`: no key that anybody can write, so that it stands apart from the data.
  package static let info = Array(".info".utf8).withUnsafeBytes { Key(trustedOrderedBytes: $0) }
}

extension Path {
  /// `/.info`: what the database says of itself, outside the data.
  package static let info = Path.root.appending(Key.info)

  /// Whether it is `/.info` or below.
  package var isInfo: Bool { Path.info.isPrefix(of: self) }
}
