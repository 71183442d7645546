import DendroProtocol
import Synchronization

/// What the bodies of all requests take in memory together, and those of each address.
final class BodyBudget: Sendable {
  /// The first bytes of a body, which count in no sum: so small requests are served whatever large ones take.
  static let freeByteCount = 16 << 10

  private let byteLimit: Int
  private let addressByteLimit: Int
  private let state = Mutex(State())

  private struct State {
    var byteCount = 0
    var byteCounts: [ClientAddress: Int] = [:]
  }

  init(_ options: DatabaseServerOptions) {
    byteLimit = options.bodiesByteLimit
    addressByteLimit = options.bodiesByteLimitByAddress ?? byteLimit / 2
  }

  /// Takes so many bytes more.
  ///
  /// - Throws: `RESTError` with status 503 if there is no room for them.
  func take(_ byteCount: Int, for address: ClientAddress?) throws(RESTError) {
    let full = state.withLock { state -> (limit: Int, whose: String)? in
      guard byteCount <= byteLimit - state.byteCount else { return (byteLimit, "") }
      if let address {
        let own = state.byteCounts[address, default: 0]
        guard byteCount <= addressByteLimit - own else {
          return (addressByteLimit, " from this address")
        }
        state.byteCounts[address] = own + byteCount
      }
      state.byteCount += byteCount
      return nil
    }
    guard let full else { return }
    throw RESTError(
      503,
      "The server is reading \(full.limit) bytes of requests\(full.whose), which is its limit.")
  }

  func giveBack(_ byteCount: Int, of address: ClientAddress?) {
    guard byteCount > 0 else { return }
    state.withLock { state in
      state.byteCount -= byteCount
      guard let address, let own = state.byteCounts[address] else { return }
      state.byteCounts[address] = own > byteCount ? own - byteCount : nil
    }
  }
}
