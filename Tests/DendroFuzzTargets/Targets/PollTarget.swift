import DendroProtocol

extension FuzzTarget {
  /// Requests of long polling, each ended by a byte 0.
  static let poll = FuzzTarget(
    "poll", "long polling: requests, segments in any order", byteLimit: 2048, weight: 40,
    seeds: {
      let message = "eyJ0IjoiYyIsImQiOnsidCI6InAiLCJkIjp7fX19"
      return [
        "/.lp?start=t&ser=93&cb=1&v=5&ns=a&ls=x", "/.lp?id=a&pw=b&ser=1&ns=a",
        "/.lp?id=a&pw=b&ser=1&seg0=0&ts0=1&d0=\(message)",
        "/.lp?id=a&pw=b&ser=2&seg0=1&ts0=2&d0=fQ..\0/.lp?id=a&pw=b&ser=1&seg0=0&ts0=2&d0=e",
        "/.lp?id=a&pw=b&disconn=t", "/.lp?id=a&pw=b&dframe=t",
        "/.lp?id=a&pw=b&ser=9&seg0=5&ts0=1&d0=e30.",
      ].map { Array($0.utf8) }
    },
    body: { bytes in
      var packets = PollPackets(byteLimit: 256)
      var answers = PollAnswers(byteLimit: 256)
      var isMalformed = false
      for target in [UInt8](bytes).split(separator: 0) {
        let request = attempt { () throws(RESTError) in
          try PollRequest(
            method: "GET", target: String(decoding: target, as: UTF8.self), headers: HTTPHeaders())
        }
        switch request.flatMap({ $0 }) {
        case .start(let start):
          let key = PollKey(id: "i", password: "p")
          var text = PollText.start(key, callback: start.callback, hello: AnswerText("{}"))
          // Nothing of the request is in the script but digits.
          let script = String(decoding: text.rest(), as: UTF8.self)
          try require(
            script.hasSuffix("pLPCommand('start','i','p');\npRTLPCB(0,[{}]);\n"),
            "the script is another one")
          try require(
            start.callback?.allSatisfy(\.isNumber) ?? true, "a callback is no number")
        case .poll(_, let serial, let segments):
          if case .new = answers.arrival(serial) { _ = answers.answer(serial, []) }
          for segment in segments where !isMalformed {
            guard let steps = attempt({ try packets.add(segment) }) else {
              isMalformed = true
              break
            }
            for case .message(let message) in steps {
              try require(message.count <= 256, "a message is over the limit")
              _ = WireMessage(message)
            }
          }
        case .page, .end, nil: break
        }
      }
    })
}
