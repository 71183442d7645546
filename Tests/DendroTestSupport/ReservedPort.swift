import DendroPlatform

/// Ports of this machine for servers that start later.
package enum ReservedPort {
  package struct Failed: Error {}

  /// Reserves a port of 127.0.0.1 until this process ends: nothing listens at it, and the system gives it to no socket that
  /// asks for any free port.
  ///
  /// A socket stays bound to it. A server that asks for this port gets it all the same, if it sets `SO_REUSEADDR` as servers
  /// do: the socket never listens.
  package static func take() throws(Failed) -> Int {
    let socket = DendroPlatform.socket(
      AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var reuses: Int32 = 1
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &reuses, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(socket, pointer, size) == 0 && getsockname(socket, pointer, &size) == 0
      }
    }
    guard isBound else {
      close(socket)
      throw Failed()
    }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}
