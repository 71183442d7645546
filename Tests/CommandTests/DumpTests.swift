import Foundation
import Testing

@Suite("dendro: dump, info --top, colours")
struct DumpTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func fill() throws {
    try dendro("set", "db", "/users/ada", #"{"name":"Ada","age":36}"#)
    try dendro("set", "db", "/users/bob", #"{"name":"Bob"}"#)
    try dendro("increment", "db", "/n", "5")
  }

  @Test("dump shows the header field by field, the writes, and the bytes")
  func dump() throws {
    try fill()
    let log = folder.bytes("db/00000000000000000001.log")
    for what in ["1", "1:64", "00000000000000000001.log:64"] {
      let json = try dendro("dump", "db", what, "--json").object
      let fields = json["fields"] as? [[String: Any]] ?? []
      #expect(
        fields.compactMap { $0["name"] as? String }.prefix(4) == [
          "magic", "kind and flags", "stored length", "first LSN",
        ])
      // The fields are the bytes of the file, without a gap.
      var offset = 64
      for field in fields {
        #expect(field["offset"] as? Int == offset)
        let bytes = (field["bytes"] as? String ?? "").split(separator: " ").compactMap {
          UInt8($0, radix: 16)
        }
        #expect(Data(bytes) == log[offset..<(offset + bytes.count)])
        offset += bytes.count
      }
      #expect(json["payloadOffset"] as? Int == offset)
      let writes = json["writes"] as? [[String: Any]] ?? []
      #expect(writes.count == 1 && writes[0]["path"] as? String == "/users/ada")
      #expect(json["problem"] is NSNull)
    }
    let text = try dendro("dump", "db", "2")
    #expect(text.status == 0)
    for word in ["kind and flags     writes, restart", "LSN 2 ", "/users/bob", "header checksum"] {
      #expect(text.output.contains(word), "\(text.output)")
    }
    let header = try dendro("dump", "db", "1:0", "--json").object
    let names = (header["fields"] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String }
    #expect(names.first == "magic" && names.last == "header checksum" && names.count == 9)
  }

  @Test("a damaged record is shown as far as it can be read; a wrong place is refused")
  func damaged() throws {
    try fill()
    var log = folder.bytes("db/00000000000000000001.log")
    log[70] ^= 1
    try folder.write(log, to: "db/00000000000000000001.log")
    let outcome = try dendro("dump", "db", "1:64")
    #expect(
      outcome.status == 2 && outcome.output.contains("damage: expected record header checksum"))
    let garbage = try dendro("dump", "db", "1:65")
    #expect(garbage.status == 2 && !garbage.wasSignalled)
    for (what, status) in [
      ("x", 64), ("0", 64), ("1:x", 64), ("1:5", 64), ("2:64", 1), ("99", 2), ("1:999999", 1),
    ] as [(String, Int32)] {
      #expect(try dendro("dump", "db", what).status == status, "\(what)")
    }
    #expect(try dendro("dump", "nowhere", "1").status == 1)
    // Every offset: nothing traps.
    for offset in stride(from: 64, to: log.count, by: 7) {
      let any = try dendro("dump", "db", "1:\(offset)")
      #expect([0, 2].contains(any.status) && !any.wasSignalled)
    }
  }

  @Test("dump takes a checkpoint apart, and the pages of each chunk, to the last byte")
  func checkpoint() throws {
    try fill()
    try dendro(
      "update", "db", "/users/ada",
      #"{".priority":7,"long":"\#(String(repeating: "x", count: 300))"}"#)
    try dendro("checkpoint", "db")
    let name = "00000000000000000004.checkpoint"
    let file = folder.bytes("db/\(name)")
    let json = try dendro("dump", "db", "checkpoint", "--json").object
    #expect(json["file"] as? String == name)
    func bytes(_ field: [String: Any]) -> Data {
      Data(
        (field["bytes"] as? String ?? "").split(separator: " ").compactMap { UInt8($0, radix: 16) })
    }
    let fields = json["fields"] as? [[String: Any]] ?? []
    for field in fields {
      let offset = try #require(field["offset"] as? Int)
      #expect(bytes(field) == file[offset..<(offset + bytes(field).count)])
    }
    let values = Dictionary(
      fields.map { ($0["name"] as? String ?? "", $0["value"] as? String ?? "") }
    ) { $1 }
    #expect(values["LSN"] == "4" && values["leaves"] == "5" && values["format version"] == "1")
    let chunks = json["chunks"] as? [[String: Any]] ?? []
    #expect(chunks.count == 1 && chunks[0]["offset"] as? Int == 64)

    let chunk = try dendro("dump", "db", "\(name):0", "--json").object
    #expect(chunk["problem"] is NSNull)
    // The fields of the pages are the raw bytes, without a gap.
    var end = 0
    var shown: [String] = []
    for page in chunk["pages"] as? [[String: Any]] ?? [] {
      #expect(page["rawOffset"] as? Int == end)
      for field in page["fields"] as? [[String: Any]] ?? [] {
        #expect(field["offset"] as? Int == end)
        end += bytes(field).count
        shown.append("\(field["name"] ?? "") \(field["value"] ?? "")")
      }
    }
    #expect(end == chunks[0]["rawBytes"] as? Int)
    for field in [
      "kind leaf page", #"key 0 "age""#, #"value 0 36"#, #"key 1 "long""#, "value 1 a page below",
      "value 0 priority 7, a page below", #"key 0 "n""#, "value 0 5", "kind box, with pages below",
    ] {
      #expect(shown.contains(field), "\(field) in \(shown)")
    }
    let text = try dendro("dump", "db", "4.checkpoint:0")
    #expect(text.status == 0 && text.output.contains("chunk magic"), "\(text.output)")
    #expect(text.output.contains("bytes of keys"))
    #expect(try dendro("dump", "db", "4.checkpoint").output.contains("chunk 0  "))
    for (what, status) in [
      ("checkpoint:1", 1), ("3.checkpoint", 1), ("x.checkpoint", 64), ("checkpoint:x", 64),
      ("checkpoint:-1", 64),
    ] as [(String, Int32)] {
      #expect(try dendro("dump", "db", what).status == status, "\(what)")
    }
    // Damage anywhere: what can be read is shown, and nothing traps.
    for offset in stride(from: 0, to: file.count, by: 11) {
      var damaged = file
      damaged[offset] ^= 0x41
      try folder.write(damaged, to: "db/\(name)")
      let whole = try dendro("dump", "db", "checkpoint")
      let part = try dendro("dump", "db", "checkpoint:0")
      #expect(!whole.wasSignalled && !part.wasSignalled)
      #expect([whole.status, part.status].contains(2), "offset \(offset)")
    }
  }

  @Test("info --top names the largest subtrees")
  func top() throws {
    try fill()
    let json = try dendro("info", "db", "--top", "3", "--json").object
    let top = json["top"] as? [[String: Any]] ?? []
    #expect(top.map { $0["path"] as? String } == ["/users", "/users/ada", "/users/bob"])
    #expect(top.map { $0["leaves"] as? Int } == [3, 2, 1])
    #expect(
      top[0]["bytes"] as? Int == #"{"ada":{"age":36,"name":"Ada"},"bob":{"name":"Bob"}}"#.count)
    let text = try dendro("info", "db", "--top", "1").output
    #expect(text.contains("largest         /users  3 leaves, "), "\(text)")
    #expect(try dendro("info", "db", "--json").object["top"] is NSNull)
    #expect(try dendro("info", "db", "--top", "0").status == 64)
  }

  @Test("get colours keys, strings, numbers and words, and nothing else changes")
  func colors() throws {
    try dendro("set", "db", "/", #"{"a":{"k\"}":"s\\","n":-1.5e30,"t":true},"l":[1,"x"]}"#)
    for options in [[], ["--compact"], ["--export"], ["--order-by", "key"], ["--shallow"]] {
      let plain = try dendro.run(["get", "db"] + options)
      let colored = try dendro.run(["get", "db", "--color", "always"] + options)
      #expect(colored.output != plain.output)
      #expect(colored.output.replacing(/\u{1B}\[\d+m/, with: "") == plain.output)
    }
    let line = try dendro("get", "db", "/a", "--compact", "--color", "always").output
    #expect(
      line
        == "{\u{1B}[36m\"k\\\"}\"\u{1B}[0m:\u{1B}[32m\"s\\\\\"\u{1B}[0m,\u{1B}[36m\"n\"\u{1B}[0m:"
        + "\u{1B}[33m-1.5e+30\u{1B}[0m,\u{1B}[36m\"t\"\u{1B}[0m:\u{1B}[34mtrue\u{1B}[0m}\n")
    #expect(try dendro("get", "db", "/a/n", "--color", "always").output.hasSuffix("\u{1B}[0m\n"))
    #expect(try dendro("get", "db", "/l/1", "--raw", "--color", "always").output == "x\n")
    #expect(
      try dendro("get", "db", "--json", "--color", "always").output
        == dendro("get", "db", "--json").output)
  }
}
