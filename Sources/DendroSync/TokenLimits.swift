import Dendro
import DendroProtocol

/// How often an application is asked for a token, and for how many.
struct TokenLimits: Sendable {
  /// So many refused tokens, and the client connects as seldom as it may.
  var refusalCountMax = 3
  /// A token is asked for so long before the one there is expires.
  var lead = Duration.seconds(300)
  /// And so long after that one has come, at the earliest.
  var leastPause = Duration.seconds(10)
  /// Half of the pause after the first asking that failed.
  var failureUnit = Duration.seconds(1)

  /// What timers can wait for, in seconds: decades.
  private static let longest: Int64 = 1 << 31

  /// How long to wait before another token is asked for; nil if this one does not say when it expires.
  ///
  /// - Parameter time: the server's, in milliseconds since 1970.
  func renewal(of token: DatabaseToken, at time: Int64) -> Duration? {
    guard case .user(let text) = token.kind,
      let token = IDToken(text), token.algorithm != "none", let end = token.time("exp")
    else { return nil }
    let rest = min(max(end, 0), 1 << 40) - time / 1000
    return max(leastPause, .seconds(min(max(rest, 0), Self.longest)) - lead)
  }

  /// How long to wait after so many askings that failed one after the other: 2 to 64 seconds.
  func delay(afterFailures count: Int) -> Duration { failureUnit * (1 << min(count, 6)) }
}
