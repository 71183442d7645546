import Dendro
import DendroEngine
import DendroServer
import DendroTestSupport
import Dispatch
import Testing

/// A database whose disk stands still, beside another one of the same server.
@Suite("serving: a disk that stands still")
struct SlowDiskServerTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  @Test("clients of one database wait for its disk, and those of another do not")
  func beside() async throws {
    let disk = HeldDisk()
    let namespaces = OpeningNamespaces(
      default: "fast", limits: OpeningNamespaces.Limits(openCount: 2), known: { ["fast", "slow"] },
      opener: { name in
        name == "fast"
          ? .inMemory()
          : try .open(
            at: "/slow", options: DatabaseOptions(), environment: disk.environment,
            mode: .readWrite)
      })
    let server = try DatabaseServer.start(namespaces, DatabaseServerOptions.patient)
    let port = server.port
    func client(_ name: String, _ parameters: String = "") throws -> WebSocketClient {
      try WebSocketClient(port: port, "/.ws?v=5&ns=\(name)\(parameters)")
    }
    let writer = try client("slow")
    #expect(try writer("p", "{\"p\":\"/first\",\"d\":1}") == [ok])
    let leaving = try client("slow")
    #expect(try leaving("o", "{\"p\":\"/left\",\"d\":1}") == [ok])
    let polls = try PollClient(port: port, "ns=slow")
    #expect(try polls("o", "{\"p\":\"/left2\",\"d\":1}") == [ok])
    disk.hold(.synchronize)
    try writer.request("p", "{\"p\":\"/held\",\"d\":1}")
    await Self.onThread { disk.waitForCall() }
    // More than the engine lets wait.
    let slow = try #require(namespaces.open("slow")).namespace.database
    let text = String(decoding: [UInt8](repeating: 120, count: 9_500_000), as: UTF8.self)
    for number in 0..<8 {
      slow.reference(withPath: "large/\(number)").setValue(text) { _, _ in }
    }
    for number in 0..<100 { try writer.request("p", "{\"p\":\"/count\",\"d\":\(number)}") }
    let session = leaving.session
    for number in 0..<20 {
      let other = try client("fast")
      #expect(try other("p", "{\"p\":\"/a\",\"d\":\(number)}") == [ok])
      #expect(try PollClient(port: port, "ns=fast")("p", "{\"p\":\"/b\",\"d\":1}") == [ok])
      if number == 5 { try leaving.send(bytes: WebSocketClient.frame(0x8, [])) }
      if number == 6 { try polls.leave() }
      if number == 7 {
        let again = try HTTPClient(port: port)
        try again.send(
          HTTPClient.request("GET", "/.lp?start=t&v=5&ns=slow&ls=\(session)"))
      }
    }
    disk.release()
    for number in 2...102 { #expect(try writer.push() == "\"r\":\(number),\"b\":\(ok)") }
    let last = try client("slow")
    #expect(try last("g", "{\"p\":\"/count\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":99}"])
    for place in ["left", "left2"] {
      while try last("g", "{\"p\":\"/\(place)\",\"q\":{}}") != ["{\"s\":\"ok\",\"d\":1}"] {}
    }
    await server.stop()
  }

  private static func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "waiter").async {
        body()
        continuation.resume()
      }
    }
  }
}
