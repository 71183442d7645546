import DendroPlatform

/// By what the clients of a server are told apart: an IPv4 address, or the first half of an IPv6 address, since all of the
/// other half is one client's own.
struct ClientAddress: Hashable, Sendable {
  private let bits: UInt64
  private let isIPv6: Bool

  /// - Returns: nil if it is an address of another kind.
  init?(_ address: UnsafePointer<sockaddr>) {
    let raw = UnsafeRawPointer(address)
    switch Int32(address.pointee.sa_family) {
    case AF_INET: self.init(raw.loadUnaligned(as: sockaddr_in.self).sin_addr)
    case AF_INET6: self.init(raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr)
    default: return nil
    }
  }

  /// - Parameter text: perhaps with a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`.
  /// - Returns: nil if it is no address.
  init?(_ text: some StringProtocol) {
    var name = text[...]
    if name.hasPrefix("[") {
      guard let end = name.firstIndex(of: "]") else { return nil }
      name = name[..<end].dropFirst()
    } else if let colon = name.firstIndex(of: ":"), colon == name.lastIndex(of: ":") {
      name = name[..<colon]
    }
    guard name.utf8.count < Int(INET6_ADDRSTRLEN) else { return nil }
    var v4 = in_addr()
    var v6 = in6_addr()
    if inet_pton(AF_INET, String(name), &v4) == 1 {
      self.init(v4)
    } else if inet_pton(AF_INET6, String(name), &v6) == 1 {
      self.init(v6)
    } else {
      return nil
    }
  }

  private init(_ address: in_addr) {
    bits = UInt64(UInt32(bigEndian: address.s_addr))
    isIPv6 = false
  }

  private init(_ address: in6_addr) {
    let (high, low) = withUnsafeBytes(of: address) { bytes in
      (
        UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
        UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    // An IPv4 address, as a socket for both kinds shows it.
    isIPv6 = high != 0 || low >> 32 != 0xFFFF
    bits = isIPv6 ? high : low & 0xFFFF_FFFF
  }
}

extension ClientAddress {
  /// One for all whose address is not known.
  static let unknown = ClientAddress(in_addr())

  /// A text that no other address has.
  var text: String { "\(isIPv6 ? 6 : 4) \(bits)" }

  /// Whether it is this machine, and so possibly a proxy that many clients come through.
  var isLoopback: Bool { isIPv6 ? bits == 0 : bits >> 24 == 127 }
}

extension Exchange {
  /// Whose request it is, for limits by client.
  var clientAddress: ClientAddress { address ?? .unknown }
}
