import DendroPlatform
import DendroTestSupport
import Foundation
import Synchronization

/// A proxy between clients and a server, which cuts the lines after so many bytes, and holds some frames up.
final class LineCutter: Sendable {
  /// What becomes of the frame in which the lines are cut.
  enum LastFrame: Sendable {
    /// Its beginning goes through.
    case cut
    case lost
    /// It goes through twice.
    case repeated
  }

  private struct Plan {
    /// The bytes until all lines are cut; nil for never.
    var rest: Int?
    var lastFrame = LastFrame.cut
    /// One frame in so many is held up; nil for none.
    var delayed: Int?
    var generator = SeededGenerator(seed: 1)
  }

  let port: Int
  private let listener: Int32
  private let target: Atomic<UInt16>
  private let plan: Mutex<Plan>
  private let lines = Mutex<[Int32]>([])

  struct Failure: Error {}

  /// - Parameter delayed: one frame in so many is held up for up to 20 ms; nil for none.
  init(to target: UInt16, delayed: Int? = nil) throws {
    self.target = Atomic(target)
    plan = Mutex(Plan(delayed: delayed))
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

  /// Leads the lines that are made from now on to another port of the server, which has been started again. It would not be safe
  /// to start it with the same port: another test may have got that meanwhile.
  func lead(to target: UInt16) { self.target.store(target, ordering: .relaxed) }

  /// Cuts all lines once so many more bytes have gone through; nil for never.
  func cut(after count: Int?, _ lastFrame: LastFrame = .cut) {
    plan.withLock { plan in
      plan.rest = count
      plan.lastFrame = lastFrame
    }
  }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private func serve(_ client: Int32) {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Self.address(target.load(ordering: .relaxed))
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
        var frames = Frames()
        var part = [UInt8](repeating: 0, count: 4096)
        receiving: while true {
          let count = recv(source, &part, part.count, 0)
          guard count > 0 else { break }
          for frame in frames.add(part[..<count]) {
            guard let self else { break receiving }
            let pause = self.pause()
            if pause > 0 { usleep(pause) }
            let (passed, isCut) = self.pass(frame)
            if send(sink, passed, passed.count, Int32(MSG_NOSIGNAL)) < passed.count {
              break receiving
            }
            if isCut { self.cutAll() }
          }
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

  /// What of a frame goes through, and whether the lines are cut behind that.
  private func pass(_ frame: [UInt8]) -> (bytes: [UInt8], isCut: Bool) {
    plan.withLock { plan in
      guard let left = plan.rest else { return (frame, false) }
      guard left < frame.count else {
        plan.rest = left - frame.count
        return (frame, false)
      }
      plan.rest = nil
      switch plan.lastFrame {
      case .cut: return (Array(frame.prefix(left)), true)
      case .lost: return ([], true)
      case .repeated: return (frame + frame, true)
      }
    }
  }

  /// For how many microseconds the next frame is held up.
  private func pause() -> UInt32 {
    plan.withLock { plan in
      guard let delayed = plan.delayed, plan.generator.oneIn(delayed) else { return 0 }
      return UInt32(plan.generator.below(20_000))
    }
  }

  private func cutAll() {
    lines.withLock { lines in for line in lines { shutdown(line, Int32(SHUT_RDWR)) } }
  }
}

/// One side of a line, in parts: the head of the request or of its answer, and then frame by frame.
private struct Frames {
  private var bytes: [UInt8] = []
  private var hasHead = false

  /// - Returns: the parts that are whole now.
  mutating func add(_ more: ArraySlice<UInt8>) -> [[UInt8]] {
    bytes += more
    var whole: [[UInt8]] = []
    while let count = hasHead ? frameByteCount : headByteCount, count <= bytes.count {
      whole.append(Array(bytes.prefix(count)))
      bytes.removeFirst(count)
      hasHead = true
    }
    return whole
  }

  private var headByteCount: Int? {
    let end = Array("\r\n\r\n".utf8)
    return bytes.indices.dropLast(3).first { Array(bytes[$0..<$0 + 4]) == end }.map { $0 + 4 }
  }

  /// Of the frame at the beginning; nil if its own head is not whole.
  private var frameByteCount: Int? {
    guard bytes.count >= 2 else { return nil }
    let short = Int(bytes[1] & 0x7F)
    let width = short == 126 ? 2 : short == 127 ? 8 : 0
    guard bytes.count >= 2 + width else { return nil }
    let count = width == 0 ? short : bytes[2..<2 + width].reduce(0) { $0 << 8 | Int($1) }
    return 2 + width + (bytes[1] & 0x80 == 0 ? 0 : 4) + count
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
