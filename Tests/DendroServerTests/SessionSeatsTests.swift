import DendroTestSupport
import Testing

@testable import DendroServer

@Suite("who has the sessions")
struct SessionSeatsTests {
  @Test("addresses without their ports; of IPv6, what a client has of its own")
  func addresses() throws {
    #expect(ClientAddress("10.1.2.3:4000") == ClientAddress("10.1.2.3:5000"))
    #expect(ClientAddress("10.1.2.3:4000") != ClientAddress("10.1.2.4:4000"))
    #expect(ClientAddress("[::ffff:10.1.2.3]:4000") == ClientAddress("10.1.2.3:1"))
    #expect(ClientAddress("[2001:db8:0:1::5]:1") == ClientAddress("[2001:db8:0:1:a:b:c:d]:2"))
    #expect(ClientAddress("[2001:db8:0:1::5]:1") != ClientAddress("[2001:db8:0:2::5]:1"))
    for (text, isLoopback) in [
      ("127.0.0.1:1", true), ("[::1]:1", true), ("128.0.0.1:1", false), ("[2001:db8::1]:1", false),
    ] {
      #expect(try #require(ClientAddress(text)).isLoopback == isLoopback)
    }
    #expect(!ClientAddress.unknown.isLoopback)
  }

  /// What a client of the model is.
  private struct Client {
    let address: Int
    var standing: SessionSeats.Standing
  }

  @Test("no limit is exceeded, and who has few sessions gets in", arguments: 0..<20)
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let limits = SessionSeats.Limits(count: 20, addressCount: 6, loopbackCount: 6, guestCount: 2)
    var seats = SessionSeats(limits)
    var clients: [String: Client] = [:]
    let addresses = (0..<6).compactMap { ClientAddress("10.0.0.\($0):1") }
    let now = ContinuousClock.now
    for number in 0..<2_000 {
      let id = "\(number)"
      let some =
        clients.keys.sorted().isEmpty
        ? nil : clients.keys.sorted()[generator.below(clients.count)]
      switch generator.below(4) {
      case 0, 1:
        let address = generator.below(addresses.count)
        let own = clients.values.count { $0.address == address }
        let seated = clients.values.filter { $0.standing != .guest }
        let most = Set(seated.filter { $0.standing != .user }.map(\.address)).map { other in
          clients.values.count { $0.address == other }
        }
        let isRefused = seats.refuses(addresses[address])
        let decision = seats.admit(id, addresses[address], at: now)
        #expect(isRefused == (decision == .refused))
        if case .replaces(let other) = decision {
          #expect(clients.removeValue(forKey: other).map { $0.standing != .user } == true)
        }
        if decision != .refused {
          clients[id] = Client(address: address, standing: seats.standing(of: id) ?? .user)
        }
        let isWelcome = own < 6 && (seated.count < 20 || most.contains { $0 > own + 1 })
        if isWelcome { #expect(seats.standing(of: id) == .new) }
      case 2:
        guard let some else { continue }
        let standing = [SessionSeats.Standing.stranger, .user][generator.below(2)]
        let decision = seats.change(some, to: standing, at: now)
        if case .replaces(let other) = decision { clients[other] = nil }
        if decision == .refused {
          #expect(clients[some]?.standing == .guest)
        } else {
          clients[some]?.standing = standing
        }
      default:
        guard let some else { continue }
        seats.leave(some)
        clients[some] = nil
      }
      #expect(seats.count == clients.count, "\(seed)")
      for (id, client) in clients { #expect(seats.standing(of: id) == client.standing) }
      #expect(clients.values.count { $0.standing != .guest } <= 20)
      #expect(clients.values.count { $0.standing == .guest } <= 2)
      for address in addresses.indices {
        #expect(
          clients.values.count { $0.address == address && $0.standing != .guest } <= 6)
      }
      #expect(
        seats.all(.guest, since: now).count == clients.values.count { $0.standing == .guest })
    }
  }
}
