import DendroPlatform
import Foundation
import Synchronization

/// A proxy between clients and a server, which cuts the lines after so many bytes.
final class LineCutter: Sendable {
  let port: Int
  private let listener: Int32
  private let target: UInt16
  /// The bytes until all lines are cut; nil for never.
  private let rest = Mutex<Int?>(nil)
  private let lines = Mutex<[Int32]>([])

  struct Failure: Error {}

  init(to target: UInt16) throws {
    self.target = target
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    self.listener = listener
    var address = Self.address(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, length) == 0 && listen(listener, 32) == 0
          && getsockname(listener, address, &length) == 0
      }
    }
    guard isListening else { throw Failure() }
    port = Int(UInt16(bigEndian: address.sin_port))
    let thread = Thread { [weak self] in
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0, let self else { break }
        self.serve(client)
      }
    }
    thread.start()
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    for line in lines.withLock({ $0 }) { shutdown(line, Int32(SHUT_RDWR)) }
  }

  /// Cuts all lines once so many more bytes have gone through; nil for never.
  func cut(after count: Int?) { rest.withLock { $0 = count } }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private func serve(_ client: Int32) {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Self.address(target)
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard isConnected else {
      close(client)
      close(server)
      return
    }
    lines.withLock { $0 += [client, server] }
    let open = OpenSides()
    for (source, sink) in [(client, server), (server, client)] {
      let thread = Thread { [weak self] in
        var part = [UInt8](repeating: 0, count: 4096)
        while true {
          let count = recv(source, &part, part.count, 0)
          guard count > 0, let self else { break }
          let passed = self.pass(count)
          if send(sink, part, passed, Int32(MSG_NOSIGNAL)) < passed { break }
          if passed < count { self.cutAll() }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(sink, Int32(SHUT_RDWR))
        guard open.closeOne() else { return }
        self?.lines.withLock { $0.removeAll { $0 == source || $0 == sink } }
        close(source)
        close(sink)
      }
      thread.start()
    }
  }

  /// How many of these bytes go through.
  private func pass(_ count: Int) -> Int {
    rest.withLock { rest in
      guard let left = rest else { return count }
      guard left < count else {
        rest = left - count
        return count
      }
      rest = nil
      return left
    }
  }

  private func cutAll() {
    lines.withLock { lines in for line in lines { shutdown(line, Int32(SHUT_RDWR)) } }
  }
}

/// The sides of a line that are open.
private final class OpenSides: Sendable {
  private let count = Mutex(2)

  /// - Returns: whether it was the last one.
  func closeOne() -> Bool {
    count.withLock { count in
      count -= 1
      return count == 0
    }
  }
}
