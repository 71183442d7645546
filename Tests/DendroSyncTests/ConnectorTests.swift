import Dendro
import DendroPlatform
import DendroServer
import Testing

@testable import DendroSync

/// Hosts with several addresses, of which not all answer.
@Suite("synced databases: addresses")
struct ConnectorTests {
  private func connect(
    to places: [Place], within timeout: Duration = .seconds(60)
  ) throws(TransportError) -> Int {
    var addresses: [Connector.Address] = []
    for place in places { addresses += try Connector.addresses(of: place.host, place.port) }
    let connector = Connector(waiter: Waiter(), deadline: .now + timeout) { false }
    let socket = try connector.connect(to: addresses)
    defer { close(socket) }
    return Place.port(of: socket, getpeername)
  }

  @Test("a host that listens at one of IPv6 and IPv4 is reached", .enabled(if: Place.hasIPv6))
  func oneFamily() throws {
    for (listening, refusing) in [("::1", "127.0.0.1"), ("127.0.0.1", "::1")] {
      let good = try Place(listening)
      let bad = try Place(refusing, .refusing)
      #expect(try connect(to: [good, bad]) == good.port)
      #expect(try connect(to: [bad, good]) == good.port)
    }
  }

  @Test("an address that does not answer holds up the next one for a moment alone")
  func hanging() throws {
    let bad = try Place("127.0.0.1", .hanging)
    let refusing = try Place("127.0.0.1", .refusing)
    let good = try Place("127.0.0.1")
    #expect(try connect(to: [bad, good]) == good.port)
    #expect(try connect(to: [bad, refusing, bad, good]) == good.port)
  }

  @Test("if no address answers, the last refusal or the deadline is the reason")
  func none() throws {
    let refusing = try Place("127.0.0.1", .refusing)
    let hanging = try Place("127.0.0.1", .hanging)
    #expect(reason { _ = try connect(to: [refusing, refusing]) } == "connect: Connection refused")
    #expect(
      reason { _ = try connect(to: [hanging], within: .milliseconds(50)) } == "it took too long")
    #expect(
      reason { _ = try connect(to: [refusing, hanging], within: .milliseconds(50)) }
        == "it took too long")
  }

  private func reason(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch {
      return "\(error)"
    }
  }

  @Test("localhost is reached, also if only one of its addresses listens")
  func localhost() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port, host: "localhost")
    let head = try server.accept()
    #expect(head.contains("\r\nHost: localhost:\(server.port)\r\n"))
    try await database.close()
  }

  @Test("an IPv6 address stands in brackets", .enabled(if: Place.hasIPv6))
  func literal() async throws {
    try await serving({ $0.hosts = ["::1"] }) { served, server in
      let database = synced(Int(server.port), host: "[::1]")
      try await database.reference(withPath: "a").setValue(1)
      #expect(try await served.reference(withPath: "a").getData().value as? Int == 1)
      try await database.close()
    }
  }
}

/// A port of this machine.
private final class Place {
  enum Kind {
    case listening
    case refusing
    /// The queue of the listener is full, so the system answers no connection.
    case hanging
  }

  let host: String
  let port: Int
  private let listener: Int32
  private var waiting: [Int32] = []

  struct Failure: Error {}

  /// - Parameter host: an address.
  init(_ host: String, _ kind: Kind = .listening) throws {
    self.host = host
    let isIPv6 = host.contains(":")
    listener = Connector.socket(isIPv6 ? AF_INET6 : AF_INET, SOCK_STREAM)
    let isBound =
      if isIPv6 {
        Self.bound(
          listener,
          sockaddr_in6(
            sin6_family: sa_family_t(AF_INET6), sin6_port: 0, sin6_flowinfo: 0,
            sin6_addr: in6addr_loopback, sin6_scope_id: 0))
      } else {
        Self.bound(listener, Self.loopback(0))
      }
    port = Self.port(of: listener, getsockname)
    guard isBound, kind == .refusing || listen(listener, kind == .hanging ? 0 : 8) == 0 else {
      throw Failure()
    }
    guard kind == .hanging else { return }
    for _ in 0..<4 {
      let socket = Connector.socket(AF_INET, SOCK_STREAM)
      withUnsafePointer(to: Self.loopback(port)) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          _ = DendroPlatform.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      waiting.append(socket)
    }
  }

  deinit { for socket in waiting + [listener] { close(socket) } }

  static let hasIPv6 = (try? Place("::1")) != nil

  private static func loopback(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private static func bound<Address>(_ socket: Int32, _ address: Address) -> Bool {
    withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, socklen_t(MemoryLayout<Address>.size)) == 0
      }
    }
  }

  /// The port of one end of a connection.
  static func port(
    of socket: Int32,
    _ name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> Int {
    // The port stands at the same place in both kinds of addresses.
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = name(socket, $0, &length) }
    }
    return Int(UInt16(bigEndian: address.sin6_port))
  }
}
