import DendroPlatform
import DendroProtocol
import Foundation

/// The proxy that the environment names for a server: `https_proxy` for encrypted connections, `http_proxy` for others,
/// in small or capital letters, but for the hosts in `no_proxy`.
struct Proxy {
  let host: String
  let port: Int
  private let credentials: String?

  /// - Returns: nil if there is none for the destination.
  init?(
    for destination: Destination,
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    func value(_ name: String) -> String? {
      let value = environment[name] ?? environment[name.uppercased()]
      return value?.isEmpty == false ? value : nil
    }
    guard let text = value(destination.isSecure ? "https_proxy" : "http_proxy"),
      !Self.isExempt(destination.host, value("no_proxy") ?? ""),
      let url = URLComponents(string: text.contains("://") ? text : "http://" + text),
      let host = url.host, !host.isEmpty
    else { return nil }
    self.host = host
    port = url.port ?? 3128
    credentials = url.user.map { $0 + ":" + (url.password ?? "") }
  }

  private static func isExempt(_ host: String, _ list: String) -> Bool {
    if ["localhost", "::1", "[::1]"].contains(host) || host.hasPrefix("127.") { return true }
    return list.split(separator: ",").contains { item in
      let name = item.trimmingCharacters(in: .whitespaces)
      if name == "*" { return true }
      let bare = name.hasPrefix(".") ? String(name.dropFirst()) : name
      return !bare.isEmpty && (host == bare || host.hasSuffix("." + bare))
    }
  }

  /// Has it connect to a host.
  func reach(
    _ host: String, _ port: Int, over stream: ByteStream, _ waiter: Waiter,
    until deadline: ContinuousClock.Instant, _ isOver: () -> Bool
  ) throws(TransportError) {
    var request = "CONNECT \(host):\(port) HTTP/1.1\r\nHost: \(host):\(port)\r\n"
    if let credentials {
      request += "Proxy-Authorization: Basic \(Base64.encode(Array(credentials.utf8)))\r\n"
    }
    try stream.writeAll(request + "\r\n", waiter, until: deadline, isOver: isOver)
    let (head, rest) = try stream.readHead(waiter, until: deadline, isOver: isOver)
    let words = head.prefix { $0 != "\r\n" }.split(separator: " ", maxSplits: 2)
    guard words.count > 1, words[1].hasPrefix("2") else {
      throw .refused("the proxy refuses: \(words.dropFirst().joined(separator: " "))")
    }
    // The server speaks only when it was spoken to: such bytes are not its own.
    guard rest.isEmpty else { throw .refused("the proxy sends more than its answer") }
  }
}
