import DendroProtocol
import DendroServer
import Testing

/// A client of long polling, which has one poll under way, and sends by another one, as the JavaScript client does.
final class PollClient: WireClient {
  private(set) var hello = ""
  var number = 0
  private(set) var id = ""
  private(set) var password = ""
  /// The connection whose poll has no answer yet.
  private var waiting: HTTPClient
  /// The one for the next poll.
  private var other: HTTPClient
  private let port: UInt16
  private var serial = 0
  private var segment = 0
  private var answerNumber = 0
  private var messages: [String] = []
  /// Answers that came before their turn.
  private var early: [Int: [String]] = [:]
  /// The number of the last answer; -1 if the client leaves at once.
  private var lastNumber: Int?
  private var hasLeft = false
  /// The characters of one segment, as many as the JavaScript client takes.
  static let segmentLength = 1840

  init(port: UInt16, _ parameters: String = "ns=app") throws {
    self.port = port
    waiting = try HTTPClient(port: port)
    other = try HTTPClient(port: port)
    let answer = try waiting("GET", "/.lp?start=t&ser=1234&v=5&\(parameters)")
    #expect(answer.status == 200)
    let start = answer.body.split(separator: "\n", maxSplits: 1)
    let words = start[0].split(separator: "'")
    guard words.count == 7, words[0] == "pLPCommand(", words[1] == "start" else {
      throw HTTPClient.Ended(answer.body)
    }
    (id, password) = (String(words[3]), String(words[5]))
    try take(String(start[1]))
    hello = messages.removeFirst()
    try poll(on: waiting)
  }

  deinit { try? leave() }

  private var isClosed: Bool { hasLeft || lastNumber.map { $0 < answerNumber } ?? false }

  /// Says that the client leaves.
  func leave() throws {
    if isClosed { return }
    hasLeft = true
    _ = try HTTPClient(port: port)("GET", "/.lp?disconn=t&id=\(id)&pw=\(password)")
  }

  /// The target of the next poll.
  func target(_ segments: String = "") -> String {
    serial += 1
    return "/.lp?id=\(id)&pw=\(password)&ser=\(serial)&ns=app\(segments)"
  }

  private func poll(on http: HTTPClient, _ segments: String = "") throws {
    try http.send(HTTPClient.request("GET", target(segments)))
  }

  // MARK: Sending

  func send(_ text: String) throws {
    let data = Self.encoded(text)
    let parts = stride(from: 0, to: data.count, by: Self.segmentLength).map {
      String(decoding: data[$0..<min(data.count, $0 + Self.segmentLength)], as: UTF8.self)
    }
    for part in parts {
      try poll(on: other, "&seg0=\(segment)&ts0=\(parts.count)&d0=\(part)")
      segment += 1
      // The server answers one of them.
      if try HTTPClient.ready(waiting, other) === waiting { swap(&waiting, &other) }
      try take(try other.answer().body)
      if lastNumber != nil { return }
    }
  }

  /// In the alphabet of URLs, with its padding.
  static func encoded(_ text: String) -> [UInt8] {
    Base64.encode(Array(text.utf8)).utf8.map { byte in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      case UInt8(ascii: "="): UInt8(ascii: ".")
      default: byte
      }
    }
  }

  // MARK: Receiving

  func message() throws -> String {
    while messages.isEmpty {
      if isClosed { throw HTTPClient.Ended("the last answer") }
      try take(try waiting.answer().body)
      if lastNumber == nil { try poll(on: waiting) }
    }
    return messages.removeFirst()
  }

  private func take(_ script: String) throws {
    let (answers, last) = try Self.answers(of: script)
    for answer in answers {
      #expect(answer.number >= answerNumber)
      early[answer.number] = answer.messages
    }
    while let next = early.removeValue(forKey: answerNumber) {
      answerNumber += 1
      messages += next
    }
    if let last { lastNumber = last }
  }

  /// What a script brings.
  static func answers(
    of script: String
  ) throws -> (answers: [(number: Int, messages: [String])], lastNumber: Int?) {
    var answers: [(number: Int, messages: [String])] = []
    var last: Int?
    for line in script.split(separator: "\n") {
      if line.hasPrefix("pLPCommand('close'") {
        last = Int(line.split(separator: ",").last?.dropLast(2) ?? "") ?? -1
        continue
      }
      let call = "pRTLPCB("
      guard line.hasPrefix(call), line.hasSuffix("]);"), let comma = line.firstIndex(of: ","),
        let number = Int(line[..<comma].dropFirst(call.count))
      else { throw HTTPClient.Ended(script) }
      let list = line[comma...].dropFirst().dropLast(2)
      answers.append((number, elements(Array(list.utf8))))
    }
    return (answers, last)
  }

  /// The texts of the elements of a JSON array.
  private static func elements(_ list: [UInt8]) -> [String] {
    var texts: [String] = []
    var depth = 0
    var isString = false
    var start = 1
    var index = 0
    while index < list.count {
      switch list[index] {
      case UInt8(ascii: "\\"): index += 1
      case UInt8(ascii: "\""): isString.toggle()
      case UInt8(ascii: "["), UInt8(ascii: "{"): depth += isString ? 0 : 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= isString ? 0 : 1
      default: break
      }
      let ends = depth == 1 && !isString && list[index] == UInt8(ascii: ",") || depth == 0
      if ends, index > start {
        texts.append(String(decoding: list[start..<index], as: UTF8.self))
        start = index + 1
      }
      index += 1
    }
    return texts
  }
}
