import DendroPlatform
import Foundation
import Synchronization

/// A line to PostgreSQL that can be cut, held, slow, or lose what comes back.
package final class PostgresProxy: Sendable {
  package enum Mode: Int, Sendable {
    /// Passes everything on.
    case open
    /// Takes everything and passes nothing on.
    case held
    /// Passes on what clients send, and loses the answers.
    case deaf
    /// Passes everything on slowly and in small pieces: when it is cut, only the beginning of much has come.
    case slow
    /// Ends each connection at once.
    case closed
  }

  private struct State {
    var mode = Mode.open
    var sockets: Set<CInt> = []
    var isEnded = false
  }

  /// In microseconds, before each piece of a slow line.
  private static let slowPause: UInt32 = 40_000
  private static let slowByteCount = 200

  package let port: Int
  private let listener: CInt
  private let target: Int
  private let state = Mutex(State())

  package var address: String { "postgresql://postgres@127.0.0.1:\(port)/postgres" }

  package init(to target: Int) throws {
    self.target = target
    (listener, port) = try Self.listen()
    let listener = listener
    Thread.detachNewThread { [weak self] in
      while true {
        let client = accept(listener, nil, nil)
        if client < 0 { return }
        guard let self else {
          close(client)
          return
        }
        serve(client)
      }
    }
  }

  deinit {
    shutdown(listener, CInt(SHUT_RDWR))
    close(listener)
    cut()
  }

  /// What happens to what is sent from now on.
  package func set(_ mode: Mode) {
    state.withLock { $0.mode = mode }
    if mode == .closed { cut() }
  }

  /// Ends all connections.
  package func cut() {
    state.withLock { state in
      for socket in state.sockets { shutdown(socket, CInt(SHUT_RDWR)) }
    }
  }

  private func serve(_ client: CInt) {
    guard state.withLock({ $0.mode }) != .closed, let server = try? Self.connect(target) else {
      close(client)
      return
    }
    state.withLock { $0.sockets.formUnion([client, server]) }
    let isHalfDone = Mutex(false)
    let ended = Ended(isHalfDone) { [weak self] in
      self?.state.withLock { $0.sockets.subtract([client, server]) }
      close(client)
      close(server)
    }
    Thread.detachNewThread { [weak self] in Self.pass(client, server, self, ended) { $0 != .held } }
    Thread.detachNewThread { [weak self] in
      Self.pass(server, client, self, ended) { $0 != .held && $0 != .deaf }
    }
  }

  /// Closes both sockets once both directions have ended.
  private final class Ended: Sendable {
    private let isHalfDone: Mutex<Bool>
    private let close: @Sendable () -> Void

    init(_ isHalfDone: consuming sending Mutex<Bool>, _ close: @escaping @Sendable () -> Void) {
      self.isHalfDone = isHalfDone
      self.close = close
    }

    func half() {
      let isWhole = isHalfDone.withLock { done in
        defer { done = true }
        return done
      }
      if isWhole { close() }
    }
  }

  private static func pass(
    _ from: CInt, _ to: CInt, _ proxy: PostgresProxy?, _ ended: Ended,
    _ passes: (Mode) -> Bool
  ) {
    weak let proxy = proxy
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(from, &bytes, bytes.count, 0)
      if count <= 0 { break }
      guard let mode = proxy?.state.withLock({ $0.mode }) else { break }
      guard passes(mode) else { continue }
      var sent = 0
      while sent < count {
        let isSlow = proxy?.state.withLock({ $0.mode }) == .slow
        if isSlow { usleep(Self.slowPause) }
        let size = isSlow ? min(Self.slowByteCount, count - sent) : count - sent
        let part = bytes.withUnsafeBytes {
          send(to, $0.baseAddress! + sent, size, CInt(MSG_NOSIGNAL))
        }
        if part <= 0 { break }
        sent += part
      }
      if sent < count { break }
    }
    shutdown(from, CInt(SHUT_RDWR))
    shutdown(to, CInt(SHUT_RDWR))
    ended.half()
  }

  // MARK: Sockets

  private static func loopback(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = UInt16(port).bigEndian
    return address
  }

  private static func listen() throws -> (CInt, Int) {
    let socket = DendroPlatform.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = loopback(0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, size) == 0 && DendroPlatform.listen(socket, 64) == 0
          && getsockname(socket, $0, &size) == 0
      }
    }
    guard isBound else { throw PostgresServer.Failure(description: "no port for a proxy") }
    return (socket, Int(UInt16(bigEndian: address.sin_port)))
  }

  private static func connect(_ port: Int) throws -> CInt {
    let socket = DendroPlatform.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = loopback(port)
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        DendroPlatform.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard isConnected else {
      close(socket)
      throw PostgresServer.Failure(description: "PostgreSQL is not there")
    }
    return socket
  }
}
