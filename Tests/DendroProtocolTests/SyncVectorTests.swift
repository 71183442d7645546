import DendroTestSupport
import Foundation
import Testing

/// The scripts of a client that does not know everything, as the official JavaScript SDK has answered them.
@Suite("keeping in step with a server: as recorded from the official SDK")
struct SyncVectorTests {
  @Test(
    "each listener gets the same events, and the server the same listens", arguments: [false, true])
  func scripts(takesHashes: Bool) throws {
    let folder = #filePath.split(separator: "/").dropLast().joined(separator: "/")
    let text = try String(contentsOfFile: "/\(folder)/Fixtures/sync.jsonl", encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.count == 499)
    var eventCount = 0
    let stride = Scale.stride(5)
    for (number, line) in lines.enumerated() where number.isMultiple(of: stride) {
      let script = try SyncScript(running: line, takesHashes: takesHashes)
      eventCount += script.eventCount
      let differences = script.differences.map { String($0.prefix(1_000)) }
      switch number {
      case 150:
        // The SDK shows nothing where the server has a leaf, since a write below that came before the leaf is accepted.
        #expect(!differences.isEmpty && differences[0].hasPrefix("step 51 (ack), L7"))
      case 445:
        // The SDK takes the last child up to (2.5, "a") by its key alone, since no child has `a/b`, and shows a child before
        // it. What follows is the correction.
        #expect(differences.count == 2 && differences[0].hasPrefix("step 24 (push), L4"))
      case 489 where takesHashes:
        // What came for a listen that had ended stays in the SDK, although the server then says that nothing is there.
        #expect(differences.count == 1 && differences[0].hasPrefix("step 77 (listened), L8"))
      default: #expect(differences == [], "line \(number + 1)")
      }
    }
    if stride == 1 { #expect(eventCount == 18_819) }
    #expect(eventCount > 0)
  }
}
