import DendroTree

/// A path whose keys may have wildcards: `*` stands for any part of a key, `**` for any number of keys, and `\*`
/// for the character itself.
struct PathPattern: Sendable {
  private enum Part: Hashable, Sendable {
    /// The pieces of a key between its wildcards, as UTF-8.
    case key([[UInt8]])
    case anyKeys
  }

  private let parts: [Part]

  /// - Throws: as `Location` does.
  init(_ text: String) throws {
    let location = try Location(text)
    parts = location.path.keys.map { key in
      key.string == "**" ? .anyKeys : .key(Self.pieces(key.string))
    }
  }

  private static func pieces(_ key: String) -> [[UInt8]] {
    var pieces: [[UInt8]] = [[]]
    var isEscaped = false
    for byte in key.utf8 {
      if byte == UInt8(ascii: "*") {
        if isEscaped {
          pieces[pieces.count - 1][pieces[pieces.count - 1].count - 1] = byte
        } else {
          pieces.append([])
        }
        isEscaped = false
      } else {
        pieces[pieces.count - 1].append(byte)
        isEscaped = byte == UInt8(ascii: "\\")
      }
    }
    return pieces
  }

  /// Whether the path is one that the pattern means, or lies above or below one.
  func concerns(_ path: Path) -> Bool {
    concerns(path.keys.map { Array($0.string.utf8) }[...], parts[...])
  }

  private func concerns(_ keys: ArraySlice<[UInt8]>, _ parts: ArraySlice<Part>) -> Bool {
    guard let key = keys.first, let part = parts.first else { return true }
    switch part {
    case .anyKeys:
      return concerns(keys, parts.dropFirst()) || concerns(keys.dropFirst(), parts)
    case .key(let pieces):
      return Self.matches(key[...], pieces) && concerns(keys.dropFirst(), parts.dropFirst())
    }
  }

  private static func matches(_ key: ArraySlice<UInt8>, _ pieces: [[UInt8]]) -> Bool {
    guard let first = pieces.first, key.starts(with: first) else { return false }
    guard pieces.count > 1, let last = pieces.last else { return key.count == first.count }
    var rest = key.dropFirst(first.count)
    for piece in pieces.dropFirst().dropLast() {
      guard let place = find(piece, in: rest) else { return false }
      rest = rest[(place + piece.count)...]
    }
    return rest.count >= last.count && rest.suffix(last.count).elementsEqual(last)
  }

  private static func find(_ piece: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
    guard bytes.count >= piece.count else { return nil }
    return (bytes.startIndex...(bytes.endIndex - piece.count)).first {
      bytes[$0...].starts(with: piece)
    }
  }
}
