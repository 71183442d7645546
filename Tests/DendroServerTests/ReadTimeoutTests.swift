import Dendro
import DendroServer
import Testing

@Suite("serving: timeout")
struct ReadTimeoutTests {
  @Test("a reading that takes longer than its client allows is refused")
  func timeout() async throws {
    try await serving { served in
      let http = try served.client()
      let values = Dictionary(uniqueKeysWithValues: (0..<100_000).map { ("k\($0)", $0 % 1000) })
      for place in ["/a", "/b"] {
        try await served.database.reference(withPath: place).setValue(values)
        // All of it is sorted, which no machine does in a millisecond.
        let query = "\(place).json?orderBy=%22$value%22&limitToFirst=1"
        let refused = try http("GET", query + "&timeout=1ms")
        #expect(refused.status == 400, "\(refused)")
        #expect(refused.body.contains("in the time of timeout"))
        #expect(try http("GET", query + "&timeout=15min").status == 200)
        #expect(try http("GET", query).status == 200)
      }
      #expect(try http("PUT", "/a.json?timeout=1ms", "1").status == 200)
    }
  }

  @Test("a token of App Check is accepted, and not looked at")
  func appCheck() async throws {
    try await serving { served in
      let http = try served.client()
      let fields = ["X-Firebase-AppCheck": "no.such.token"]
      #expect(try http("PUT", "/a.json?ac=none", "1", fields).status == 200)
      let preflight = try http("OPTIONS", "/a.json", nil, ["Origin": "http://localhost:3000"])
      #expect(
        preflight.headers["access-control-allow-headers"]?.contains("X-Firebase-AppCheck") == true)
    }
  }
}
