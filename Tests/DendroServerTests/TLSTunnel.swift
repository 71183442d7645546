import CDendroCrypto
import DendroPlatform
import Foundation

/// A client's side of TLS: what is said over `socket` comes to a server encrypted, and what that says comes back.
///
/// It ends when the other end of `socket`, which the user closes, or the server does.
final class TLSTunnel: @unchecked Sendable {
  struct Refused: Error {}

  /// Where an `HTTPClient` speaks.
  let socket: Int32
  /// The subject of the server's certificate, as `/CN=name`.
  let subject: String
  private let own: Int32
  private let outer: Int32
  private let tls: OpaquePointer

  private struct Shared: @unchecked Sendable {
    let context = SSL_CTX_new(TLS_client_method())
    let transport = dendro_tls_transport()
  }

  private static let shared = Shared()

  /// - Parameter outer: connected to the server; taken over.
  init(_ outer: Int32) throws {
    var pair: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0,
      let tls = dendro_tls_accept(Self.shared.context, Self.shared.transport, outer)
    else { throw Refused() }
    SSL_set_connect_state(tls)
    guard SSL_do_handshake(tls) == 1, let certificate = SSL_get1_peer_certificate(tls) else {
      SSL_free(tls)
      for descriptor in pair + [outer] { close(descriptor) }
      throw Refused()
    }
    var name = [CChar](repeating: 0, count: 256)
    X509_NAME_oneline(X509_get_subject_name(certificate), &name, 256)
    X509_free(certificate)
    subject = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    socket = pair[0]
    own = pair[1]
    self.outer = outer
    self.tls = tls
    _ = fcntl(outer, F_SETFL, fcntl(outer, F_GETFL, 0) | O_NONBLOCK)
    Thread.detachNewThread { self.run() }
  }

  private func run() {
    var bytes = [UInt8](repeating: 0, count: 16 << 10)
    var isOpen = true
    while isOpen {
      var sockets = [outer, own].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&sockets, 2, -1) > 0 else { break }
      if sockets[1].revents != 0 {
        let count = recv(own, &bytes, bytes.count, 0)
        isOpen = count > 0 && write(bytes[..<max(0, count)])
      }
      while isOpen {
        let count = Int(dendro_tls_read(tls, &bytes, Int32(bytes.count)))
        if count == dendro_tls_wants_read { break }
        isOpen = count > 0 && send(own, bytes, count, Int32(MSG_NOSIGNAL)) == count
      }
    }
    dendro_tls_close(tls)
    SSL_free(tls)
    close(own)
    close(outer)
  }

  private func write(_ bytes: ArraySlice<UInt8>) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Int(dendro_tls_write(tls, $0.baseAddress, Int32($0.count)))
      }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if count == dendro_tls_wants_write {
        var room = pollfd(fd: outer, events: Int16(POLLOUT), revents: 0)
        poll(&room, 1, -1)
      } else {
        return false
      }
    }
    return true
  }
}
