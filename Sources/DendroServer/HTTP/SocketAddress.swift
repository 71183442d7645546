import DendroPlatform

/// A numeric address with its port.
struct SocketAddress {
  private var storage: sockaddr_storage
  let family: Int32

  /// - Parameter host: what it stands for, as it was said.
  init(numeric name: String, port: UInt16, of host: String) throws(DatabaseServerError) {
    var v4 = sockaddr_in()
    var v6 = sockaddr_in6()
    storage = sockaddr_storage()
    if inet_pton(AF_INET, name, &v4.sin_addr) == 1 {
      v4.sin_family = sa_family_t(AF_INET)
      v4.sin_port = port.bigEndian
      family = AF_INET
      withUnsafeMutableBytes(of: &storage) { target in
        withUnsafeBytes(of: v4) { target.copyMemory(from: $0) }
      }
    } else if inet_pton(AF_INET6, name, &v6.sin6_addr) == 1 {
      v6.sin6_family = sa_family_t(AF_INET6)
      v6.sin6_port = port.bigEndian
      family = AF_INET6
      withUnsafeMutableBytes(of: &storage) { target in
        withUnsafeBytes(of: v6) { target.copyMemory(from: $0) }
      }
    } else {
      throw DatabaseServerError("\(host) is neither a numeric address nor localhost")
    }
  }

  /// The address that a socket has; nil if it has none.
  init?(boundTo socket: Int32) {
    storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) { storage in
      storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
    }
    guard result == 0 else { return nil }
    family = Int32(storage.ss_family)
  }

  /// The numeric addresses that a host stands for.
  static func names(of host: String) -> [String] {
    host == "localhost" ? ["127.0.0.1", "::1"] : [host]
  }

  /// Whether only this machine reaches the address.
  static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1" || host.hasPrefix("127.")
  }

  var port: UInt16 {
    withUnsafeBytes(of: storage) { bytes in
      family == AF_INET6
        ? UInt16(bigEndian: bytes.loadUnaligned(as: sockaddr_in6.self).sin6_port)
        : UInt16(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_port)
    }
  }

  func withPointer<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    let size =
      family == AF_INET6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    return withUnsafePointer(to: storage) { storage in
      storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(size)) }
    }
  }

  /// An address with its port, as in a URL: `127.0.0.1:9000` or `[::1]:9000`; nil if it is of another kind.
  static func text(of address: UnsafePointer<sockaddr>) -> String? {
    var name = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let raw = UnsafeRawPointer(address)
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
      var v4 = raw.loadUnaligned(as: sockaddr_in.self)
      inet_ntop(AF_INET, &v4.sin_addr, &name, socklen_t(name.count))
      return "\(string(name)):\(UInt16(bigEndian: v4.sin_port))"
    case AF_INET6:
      var v6 = raw.loadUnaligned(as: sockaddr_in6.self)
      inet_ntop(AF_INET6, &v6.sin6_addr, &name, socklen_t(name.count))
      return "[\(string(name))]:\(UInt16(bigEndian: v6.sin6_port))"
    default: return nil
    }
  }

  private static func string(_ name: [CChar]) -> String {
    String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The name that the machine gives itself; empty if it has none.
func machineName() -> String {
  var name = [CChar](repeating: 0, count: 256)
  guard gethostname(&name, name.count - 1) == 0 else { return "" }
  return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
