import DendroPlatform
import Foundation
import Synchronization

/// The clients of some attacks, on a thread of their own.
final class Crowd: Sendable {
  private let isOver = Atomic(false)
  private let record = Mutex(AttackRecord())
  private let thread = Mutex<RunningThread?>(nil)

  /// Begins.
  init(_ attacks: [Attack], port: UInt16) {
    thread.withLock {
      $0 = Thread.running { [self] in attack(attacks, port) }
    }
  }

  /// Ends all of them, and says what they have done.
  func stop() throws -> AttackRecord {
    isOver.store(true, ordering: .relaxed)
    try thread.withLock(\.self)?.join()
    return record.withLock(\.self)
  }

  private func attack(_ attacks: [Attack], _ port: UInt16) {
    let begin = ContinuousClock.now
    var clients = attacks.flatMap { attack in
      (0..<attack.clientCount).map { HostileClient(attack, $0, port: port) }
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    defer { buffer.deallocate() }
    while !isOver.load(ordering: .relaxed) {
      var sockets = clients.map(\.waitingFor)
      _ = poll(&sockets, nfds_t(sockets.count), 5)
      let now = (ContinuousClock.now - begin) / .seconds(1)
      for index in clients.indices { clients[index].act(sockets[index].revents, at: now, buffer) }
    }
    record.withLock { record in
      for client in clients { record += client.record }
    }
  }
}
