import DendroTestSupport
import Foundation
import Testing

extension Tool {
  /// Starts a server with `--json`, and waits for the line that says where it is.
  func serve(_ arguments: [String]) throws -> (Running, port: UInt16) {
    let server = try start(["serve"] + arguments + ["--port", "0", "--json"])
    #expect(server.waitForOutput("\n"))
    let line = server.text(server.output)
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    return (server, UInt16(try #require(object?["port"] as? Int)))
  }

  /// The answer to a request, over a connection of its own.
  static func request(
    _ method: String, _ port: UInt16, _ target: String, _ body: String = "", header: String = ""
  ) throws -> (status: Int, body: String) {
    try PlainRequest.send(method, port, target, body, header: header)
  }
}

extension Tool.Running {
  /// The lines of a server's log, as objects.
  var log: [[String: Any]] {
    text(errors).split(separator: "\n").compactMap { line in
      try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    }
  }
}
