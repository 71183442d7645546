import DendroProtocol
import DendroTree
import Testing

@Suite("the values of the data viewer's log")
struct WritePreviewTests {
  private func preview(_ json: String) throws -> String? {
    WritePreview.text(.set(.root, try JSONParser.parse(json)))
  }

  @Test("each kind of write")
  func kinds() throws {
    let place = try Path(parsing: "a/b")
    let entries = [
      Write.Entry(path: place, action: .set(Node(.integer(1)))),
      Write.Entry(path: place, action: .setPriority(.string("p"))),
      Write.Entry(path: place, action: .increment(.integer(2))),
      Write.Entry(path: place, action: .remove),
    ]
    for (write, text) in [
      (.set(place, Node(.string("\"x\""))), #""\"x\"""#),
      (.update(.root, entries), #"{"a/b":1,"a/b/.priority":"p","a/b":+2,"a/b":null}"#),
      (.update(.root, []), "{}"), (.remove(place), nil),
      (.increment(place, .integer(3)), "+3"), (.increment(place, .double(-1.5)), "-1.5"),
      (.setPriority(place, .integer(5)), "5"), (.setPriority(place, nil), "null"),
    ] as [(Write, String?)] {
      #expect(WritePreview.text(write) == text)
    }
  }

  @Test("what is long is cut, and no character is")
  func cut() throws {
    let limit = WritePreview.byteLimit
    let whole = "\"" + String(repeating: "x", count: limit - 2) + "\""
    #expect(try preview(whole) == whole)
    #expect(
      try preview("\"x" + whole.dropFirst()) == "\"" + String(repeating: "x", count: limit - 1)
        + "…")
    for shift in 0..<4 {
      let long =
        "\"" + String(repeating: "x", count: shift) + String(repeating: "𝄞", count: 4000) + "\""
      let text = try #require(try preview(long))
      #expect(text.hasSuffix("𝄞…") && long.hasPrefix(text.dropLast()))
      #expect((limit - 3...limit).contains(text.dropLast().utf8.count))
    }
    let members = (0..<5000).map { "\"k\($0)\":{\"a\":\($0)}" }.joined(separator: ",")
    let text = try #require(try preview("{\(members)}"))
    #expect(text.hasPrefix("{\"k0\":{\"a\":0}") && text.utf8.count == limit + "…".utf8.count)
  }
}
