import DendroServer
import Testing

/// A session whose polls the test sends itself.
struct PollSession {
  let http: HTTPClient
  let key: String

  init(_ served: Served) throws {
    http = try served.client()
    let answer = try http("GET", "/.lp?start=t&ser=7&v=5&ns=app")
    let words = answer.body.split(separator: "'")
    #expect(words.count > 5 && words[1] == "start")
    key = "id=\(words[3])&pw=\(words[5])"
  }

  func target(_ serial: Int, _ segments: String = "") -> String {
    "/.lp?\(key)&ser=\(serial)&ns=app\(segments)"
  }

  /// Sends the only poll, and waits until the server holds it.
  func held(_ served: Served, _ serial: Int, _ segments: String = "") throws -> HTTPClient {
    let poll = try poll(served, serial, segments)
    while try !http("GET", "/.metrics").body.contains("\ndendro_held_polls 1\n") {}
    return poll
  }

  /// Sends a poll over a connection of its own, and does not wait for its answer.
  func poll(_ served: Served, _ serial: Int, _ segments: String = "") throws -> HTTPClient {
    let http = try served.client()
    try http.send(HTTPClient.request("GET", target(serial, segments)))
    return http
  }

  // MARK: Items and messages

  /// The items of a query that are a message's only segment.
  static func segment(_ number: Int, _ text: String) -> String {
    let data = String(decoding: PollClient.encoded(text), as: UTF8.self)
    return "&seg0=\(number)&ts0=1&d0=\(data)"
  }

  static func put(_ number: Int, _ path: String, _ value: String) -> String {
    "{\"t\":\"d\",\"d\":{\"r\":\(number),\"a\":\"p\",\"b\":{\"p\":\"\(path)\",\"d\":\(value)}}}"
  }
}
