/// The answers of long polling: scripts, which browsers run.
package enum PollText {
  /// The answer to a start.
  ///
  /// - Parameters:
  ///   - key: of the session.
  ///   - callback: the number of the functions that a browser has made for it. Without one the client calls the script
  ///     with functions of its own.
  ///   - hello: the first message.
  package static func start(
    _ key: PollKey, callback: String?, hello: AnswerText
  ) -> AnswerText {
    var text = AnswerText()
    if let callback {
      // The script runs in a frame of the client's page.
      for (name, parameters) in [("pLPCommand", "c, a1, a2, a3, a4"), ("pRTLPCB", "pN, data")] {
        let function = "parent.window[\"\(name)\(callback)\"]"
        text.append(
          "function \(name)(\(parameters)) {\n\(function) && \(function)(\(parameters));\n}\n")
      }
    }
    text.append("pLPCommand('start','\(key.id)','\(key.password)');\n")
    text.append(messages([hello], number: 0))
    return text
  }

  /// An answer with messages, or with none; `number` counts the answers of a session.
  package static func messages(_ messages: [AnswerText], number: Int) -> AnswerText {
    var text = AnswerText("pRTLPCB(\(number),[")
    for (index, message) in messages.enumerated() {
      if index > 0 { text.append(",") }
      text.append(message)
    }
    text.append("]);\n")
    return text
  }

  /// Makes the client leave once it has handled the answer with a number, and those before it.
  package static func close(after number: Int) -> AnswerText {
    AnswerText("pLPCommand('close',\(number));\n")
  }

  /// Makes the client leave: there is no such session.
  package static let close = AnswerText("pLPCommand('close');\n")

  /// The page of a frame: when the browser takes it away, the session ends.
  package static func page(_ key: PollKey) -> AnswerText {
    AnswerText(
      """
      <!DOCTYPE html>
      <html><head><title>Long polling</title></head><body><script>
      addEventListener("pagehide", function () {
        fetch("/.lp?disconn=t&id=\(key.id)&pw=\(key.password)", { keepalive: true });
      });
      </script></body></html>

      """)
  }
}
