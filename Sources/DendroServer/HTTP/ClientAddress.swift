import DendroPlatform

/// Where a client is, for limits by client: an address without its port.
///
/// Of IPv6 it is the first 64 bits, since a client has all addresses that begin with them.
struct ClientAddress: Hashable, Sendable {
  private let text: String
  /// Whether it is this machine, and so possibly a proxy that many clients come through.
  let isLoopback: Bool

  /// - Parameter client: an address with its port, as `SocketAddress.text(of:)` writes it; empty if it is not known.
  init(_ client: String) {
    var host = client[..<(client.lastIndex(of: ":") ?? client.endIndex)]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    let mapped = "::ffff:"
    if host.hasPrefix(mapped), host.contains(".") { host = host.dropFirst(mapped.count) }
    isLoopback = SocketAddress.isLoopback(String(host))
    var v6 = in6_addr()
    guard !isLoopback, inet_pton(AF_INET6, String(host), &v6) == 1 else {
      text = String(host)
      return
    }
    text = withUnsafeBytes(of: v6) { bytes in
      bytes.prefix(8).map { String($0, radix: 16) }.joined(separator: ":")
    }
  }
}

extension Exchange {
  /// Whose request it is, for limits by client.
  var clientAddress: ClientAddress { ClientAddress(client) }
}
