import CDendroMicroHTTPD
import DendroProtocol
import Synchronization
import Testing

@testable import DendroServer

@Suite struct ExchangeTests {
  /// Whether libmicrohttpd has freed a response.
  private final class Flag: Sendable {
    private let state = Atomic<Bool>(false)
    var isSet: Bool { state.load(ordering: .relaxed) }

    func set() { state.store(true, ordering: .relaxed) }
  }

  private static func exchange() throws -> Exchange {
    let options = DatabaseServerOptions()
    let context = HTTPContext(
      options, try RequestPolicy(isStrict: true), ServerFigures(),
      LingeringSockets(try SocketLoop()), refusal: { _ in nil }, perform: { _ in })
    return Exchange("/.ws", context, HTTPConnection(-1, HTTPConnection.Limits(options), nil))
  }

  @Test(
    "the answer to an upgrade is freed though it is never sent, since the client has left or has got another answer",
    arguments: [false, true])
  func neverSent(hasOther: Bool) throws {
    let isFreed = Flag()
    weak var upgrade: PendingUpgrade?
    do {
      let exchange = try Self.exchange()
      if hasOther { exchange.finish(RESTAnswer(.internalError)) }
      let flag = Unmanaged.passRetained(isFreed).toOpaque()
      let response = MHD_create_response_from_callback(
        0, 1_024, { _, _, _, _ in dendro_end_of_stream }, flag,
        { flag in
          guard let flag else { return }
          Unmanaged<Flag>.fromOpaque(flag).takeRetainedValue().set()
        })
      let own = PendingUpgrade { _, _ in }
      upgrade = own
      exchange.finish(
        .custom(
          Exchange.CustomAnswer(
            status: 101, response: try #require(response), upgrade: .passRetained(own))))
      exchange.complete()
    }
    #expect(isFreed.isSet)
    #expect(upgrade == nil)
  }
}
