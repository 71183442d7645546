import Dendro
import Foundation
import Testing

@Suite("Nodes become values")
struct NodeValueTests {
  @Test(
    "children make an array if their keys allow it",
    arguments: [
      ("0:a 1:b 2:c", #"["a","b","c"]"#),
      ("0:a", #"["a"]"#),
      ("1:a", #"[null,"a"]"#),
      ("2:a", #"{2:"a"}"#),
      ("1:a 2:b", #"[null,"a","b"]"#),
      ("2:a 3:b", #"[null,null,"a","b"]"#),
      ("1:a 3:b", #"[null,"a",null,"b"]"#),
      ("0:a 1:b 3:c", #"["a","b",null,"c"]"#),
      ("0:a 3:b", #"["a",null,null,"b"]"#),
      ("0:a 4:b", #"{0:"a",4:"b"}"#),
      ("0:a 5:b 6:c", #"{0:"a",5:"b",6:"c"}"#),
      ("3:1 4:1 5:1", #"[null,null,null,"1","1","1"]"#),
      ("4:1 5:1 6:1", #"{4:"1",5:"1",6:"1"}"#),
      ("0:a 00:b", #"{0:"a",00:"b"}"#),
      ("1:a 01:b", #"{01:"b",1:"a"}"#),
      ("-1:x 0:y", #"{-1:"x",0:"y"}"#),
      ("0:a x:b", #"{0:"a",x:"b"}"#),
      ("3024:5", #"{3024:"5"}"#),
      ("2147483648:a", #"{2147483648:"a"}"#),
      ("256:a 0:b", #"{0:"b",256:"a"}"#),
    ])
  func arrays(_ children: String, _ value: String) async throws {
    let ref = Database.inMemory().reference()
    for child in children.split(separator: " ") {
      let parts = child.split(separator: ":").map(String.init)
      try await ref.child("place").child(parts[0]).setValue(parts[1])
    }
    #expect(shown(try await ref.child("place").getData().value) == value)
  }

  @Test("arrays by step: they shrink, and turn into dictionaries")
  func shrinking() async throws {
    let list = Database.inMemory().reference().child("l")
    try await list.setValue(["a", "b", "c"])
    #expect(shown(try await list.getData().value) == #"["a","b","c"]"#)
    try await list.child("0").removeValue()
    #expect(shown(try await list.getData().value) == #"[null,"b","c"]"#)
    try await list.child("1").removeValue()
    #expect(shown(try await list.getData().value) == #"{2:"c"}"#)
    try await list.child("3").setValue("d")
    #expect(shown(try await list.getData().value) == #"[null,null,"c","d"]"#)
  }

  @Test("nested arrays, and none in the export form")
  func export() async throws {
    let ref = Database.inMemory().reference()
    try await ref.setValue(["0": ["p", "q"]])
    #expect(shown(try await ref.getData().value) == #"[["p","q"]]"#)
    try await ref.setValue([[".value": 1, ".priority": 3], 2] as [Any])
    #expect(
      shown(try await ref.getData().valueInExportFormat()) == "{0:{.priority:3,.value:1},1:2}")
    #expect(shown(try await ref.getData().value) == "[1,2]")
  }

  @Test("the export form makes the same data again; the plain value clears the priorities")
  func exportRoundTrip() async throws {
    let database = Database.inMemory()
    let ref = database.reference()
    let data: [String: Any] = [
      "a": [".value": "t", ".priority": 1], "b": ["c": true, ".priority": "z"],
    ]
    let exported = #"{a:{.priority:1,.value:"t"},b:{.priority:"z",c:true}}"#
    try await ref.setValue(data)
    let snapshot = try await ref.getData()
    #expect(shown(snapshot.valueInExportFormat()) == exported)
    #expect(shown(snapshot.value) == #"{a:"t",b:{c:true}}"#)
    let recorder = Recorder(database)
    recorder.listen("", ref, [.childMoved, .childChanged])
    try await ref.setValue(snapshot.valueInExportFormat())
    #expect(await recorder.take() == [])
    try await ref.setValue(snapshot.value)
    #expect(
      await recorder.take() == [
        #"moved a="t" after nil"#, #"moved b={c:true} after a"#, #"changed a="t" after nil"#,
        #"changed b={c:true} after a"#,
      ])
    #expect(shown(try await ref.getData().valueInExportFormat()) == #"{a:"t",b:{c:true}}"#)
  }

  @Test("values satisfy the casts that programs for Apple's systems write")
  func casts() async throws {
    let ref = Database.inMemory().reference()
    try await ref.setValue([
      "i": 5, "d": 5.5, "w": 5.0, "t": true, "max": Int64.max, "s": "x", "one": 1,
    ])
    let snapshot = try await ref.getData()
    func at(_ key: String) -> Any? { snapshot.childSnapshot(forPath: key).value }
    #expect(at("i") as? Int == 5)
    #expect(at("i") as? Double == 5.0)
    #expect(at("w") as? Int == 5)
    #expect(at("d") as? Double == 5.5)
    #expect(at("d") as? Int == nil)
    #expect(at("t") as? Bool == true)
    #expect(at("one") as? Bool == true)
    #expect(at("max") as? Int == Int.max)
    #expect(at("s") as? String == "x")
    #expect(at("none") is NSNull)
    let dictionary = snapshot.value as? NSDictionary
    #expect(dictionary?["s"] as? String == "x")
    #expect(dictionary?["i"] as? Int == 5)
    #expect((snapshot.value as? [String: AnyObject])?["i"] as? Int == 5)
    try await ref.setValue(["a": 1, "b": 2])
    #expect(try await ref.getData().value as? [String: Int] == ["a": 1, "b": 2])
    try await ref.setValue([1, 2, 3])
    #expect(try await ref.getData().value as? [Int] == [1, 2, 3])
    #expect(at("t") as? Int == 1)
    #expect(at("max") as? Double == nil, "not exact")
    #expect(at("i") is NSNumber && at("t") is NSNumber && at("d") is NSNumber)
    // One place of nothing, and an array is no array of integers.
    try await ref.setValue([1, NSNull(), 3])
    #expect(try await ref.getData().value as? [Int] == nil)
    #expect(try await ref.getData().value as? [Any] != nil)
    try await ref.setValue(["a": [1, NSNull(), 3], "b": [1, 2]])
    #expect(try await ref.getData().value as? [String: [Int]] == nil)
  }

  @Test("typed reads without Any")
  func typed() async throws {
    let ref = Database.inMemory().reference()
    try await ref.setValue(["i": 5, "w": 5.0, "d": 5.5, "t": true, "s": "x", "o": ["a": 1]])
    let snapshot = try await ref.getData()
    func read(_ key: String) -> String {
      let child = snapshot[key]
      return
        "\(child.int as Any) \(child.double as Any) \(child.string as Any) \(child.bool as Any)"
        .replacingOccurrences(of: "Optional", with: "")
    }
    #expect(read("i") == "(5) (5.0) nil nil")
    #expect(read("w") == "(5) (5.0) nil nil")
    #expect(read("d") == "nil (5.5) nil nil")
    #expect(read("t") == "nil nil nil (true)")
    #expect(read("s") == "nil nil (\"x\") nil")
    #expect(read("o") == "nil nil nil nil")
    #expect(read("none") == "nil nil nil nil")
  }
}
