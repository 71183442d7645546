import Dendro
import Foundation
import Testing

@Suite("Mutable data")
struct MutableDataTests {
  /// Runs one transaction on `before`, and returns what `body` noted down. What it leaves is written.
  @discardableResult
  func change(
    _ before: Any?, at ref: DatabaseReference = Database.inMemory().reference().child("p"),
    _ body: @escaping @Sendable (MutableData) throws -> [String]
  ) async throws -> [String] {
    try await ref.setValue(before)
    return try await ref.transaction(body)
  }

  // MARK: Reading

  @Test("value, priority, key and children of what is there")
  func reading() async throws {
    let lines = try await change(
      [
        "b": ["x": 1, "y": true], "a": [".value": "s", ".priority": 2], "c": 1.5,
        "list": [1, NSNull(), 3],
        ".priority": "top",
      ]
    ) { data in
      [
        shown(data.value), shown(data.priority), "\(data.key ?? "nil")", "\(data.childrenCount)",
        "\(data.hasChildren()) \(data.hasChild(atPath: "b/x")) \(data.hasChild(atPath: "b/z"))",
        (data.children.allObjects as! [MutableData]).map { $0.key! }.joined(separator: ","),
        shown(data.childData(byAppendingPath: "a").priority),
        data.childData(byAppendingPath: "b/x").key!,
        "\(data.childData(byAppendingPath: "b").childrenCount)",
        "\(data.childData(byAppendingPath: "c").hasChildren())",
        shown(data.childData(byAppendingPath: "/").value).count > 20 ? "whole" : "part",
        "\(data.childData(byAppendingPath: "/").key ?? "nil")",
        shown(data.childData(byAppendingPath: "no/thing").value),
        shown(data.childData(byAppendingPath: "no/thing").priority),
        "\(data.childData(byAppendingPath: "no/thing").key!)",
      ]
    }
    #expect(
      lines == [
        "{a:\"s\",b:{x:1,y:true},c:1.5,list:[1,null,3]}", "\"top\"", "nil", "4",
        "true true false", "b,c,list,a", "2", "x", "2", "false", "whole", "nil", "null", "null",
        "thing",
      ])
  }

  @Test("nothing is NSNull, has no priority and no children")
  func nothing() async throws {
    let lines = try await change(nil) { data in
      [
        shown(data.value), shown(data.priority), "\(data.hasChildren())", "\(data.childrenCount)",
        "\(data.children.nextObject() == nil)",
      ]
    }
    #expect(lines == ["null", "null", "false", "0", "true"])
  }

  // MARK: Setting

  /// What is set where, and what is there then in export form.
  struct Setting: Sendable, CustomTestStringConvertible {
    let before: String
    nonisolated(unsafe) let start: Any?
    let body: @Sendable (MutableData) -> Void
    let after: String
    var testDescription: String { "\(before) -> \(after)" }

    init(
      _ before: String, _ start: Any?, _ after: String,
      _ body: @escaping @Sendable (MutableData) -> Void
    ) {
      self.before = before
      self.start = start
      self.after = after
      self.body = body
    }
  }

  @Test(
    "setting values and priorities",
    arguments: [
      Setting("a path is made", nil, "{a:{b:1}}") {
        $0.childData(byAppendingPath: "a/b").value = 1
      },
      Setting("an array", nil, "{0:1,1:2}") {
        $0.value = [1, 2]
        #expect($0.childrenCount == 2)
      },
      Setting(
        "a leaf becomes a branch and keeps its priority", [".value": 5, ".priority": 9],
        "{.priority:9,a:1}"
      ) { $0.childData(byAppendingPath: "a").value = 1 },
      Setting(
        "a branch without children is removed, with its priority", ["a": 1, ".priority": 9], "null"
      ) { $0.childData(byAppendingPath: "a").value = nil },
      Setting("nothing below a leaf is removed", 5, "5") {
        $0.childData(byAppendingPath: "a/b").value = NSNull()
      },
      Setting("the value without the priority", [".value": 5, ".priority": 2], "6") {
        $0.value = 6
      },
      Setting(
        "the priority without the value", [".value": 5, ".priority": 2],
        "{.priority:3,.value:5}"
      ) { $0.priority = 3 },
      Setting("no priority", [".value": 5, ".priority": 2], "5") { $0.priority = nil },
      Setting("a priority of nothing", nil, "null") { $0.priority = 3 },
      Setting("a priority within the value", 5, "{.priority:\"x\",.value:6}") {
        $0.value = [".value": 6, ".priority": "x"]
      },
      Setting(
        "a value, and its priority again", [".value": 5, ".priority": 2],
        "{.priority:2,.value:6}"
      ) { data in
        let priority = data.priority
        data.value = 6
        data.priority = priority
      },
      Setting(
        "the value that was read keeps no priorities", ["a": [".value": 1, ".priority": 2]],
        "{a:1}"
      ) { data in
        let value = data.value
        data.value = value
      },
      Setting("setting nothing removes", ["a": 1], "null") { $0.value = [String: Any]() },
    ])
  func setting(_ example: Setting) async throws {
    let ref = Database.inMemory().reference().child("p")
    try await change(example.start, at: ref) { data in
      example.body(data)
      return []
    }
    #expect(shown(try await ref.getData().valueInExportFormat()) == example.after)
  }

  @Test("all views of one run look at the same data")
  func views() async throws {
    let lines = try await change(["a": ["b": 1]]) { data in
      let a = data.childData(byAppendingPath: "a")
      let b = data.childData(byAppendingPath: "a/b")
      var lines: [String] = []
      b.value = 2
      lines.append(shown(a.value))
      a.value = ["c": 3]
      lines.append("\(shown(b.value)) \(shown(data.value))")
      b.value = ["d": 4]
      lines.append("\(shown(data.value)) \(b.childrenCount) \(data.hasChild(atPath: "a/b/d"))")
      data.value = nil
      lines.append("\(shown(a.value)) \(b.hasChildren())")
      b.value = 5
      lines.append(shown(data.value))
      return lines
    }
    #expect(
      lines == [
        "{b:2}", "null {a:{c:3}}", "{a:{b:{d:4},c:3}} 1 true", "null false", "{a:{b:5}}",
      ])
  }

  @Test("children are those of the moment, by priority and then by key, and each is live")
  func children() async throws {
    let ref = Database.inMemory().reference().child("p")
    let lines = try await change(
      [
        "c": [".value": 1, ".priority": 1], "b": [".value": 2, ".priority": 1], "z": 3, "10": 4,
        "9": 5,
      ], at: ref
    ) { data in
      var lines: [String] = []
      for case let child as MutableData in data.children {
        lines.append("\(child.key!)=\(shown(child.value))")
        if child.key == "9" { data.childData(byAppendingPath: "z").value = 30 }
        data.childData(byAppendingPath: "new-\(child.key!)").value = true
        if child.key == "b" { data.childData(byAppendingPath: "c").value = nil }
        child.value = 0
      }
      return lines
    }
    #expect(lines == ["9=5", "10=4", "z=30", "b=2", "c=null"])
    #expect(
      shown(try await ref.getData().value)
        == "{10:0,9:0,b:0,c:0,new-10:true,new-9:true,new-b:true,new-c:true,new-z:true,z:0}")
  }

  @Test("values read as objects may be handed back")
  func objects() async throws {
    let ref = Database.inMemory().reference().child("p")
    try await change(
      [
        "title": "Rings", "count": 3, "half": 0.5, "big": Int64.max, "shown": true, "hidden": false,
        "tags": ["a", "b"], "marks": ["ada": true, "bob": false],
      ], at: ref
    ) { data in
      guard var post = data.value as? [String: AnyObject] else { return [] }
      var marks = post["marks"] as? [String: Bool] ?? [:]
      marks["ada"] = nil
      marks["cy"] = true
      post["marks"] = marks as AnyObject?
      post["count"] = ((post["count"] as? Int ?? 0) + 1) as AnyObject?
      data.value = post
      return []
    }
    #expect(
      shown(try await ref.getData().value)
        == """
        {big:9223372036854775807,count:4,half:0.5,hidden:false,marks:{bob:false,cy:true},shown:true,\
        tags:["a","b"],title:"Rings"}
        """)
  }

  // MARK: Server values

  @Test("increments add to what was there when the block began, and show as the sum")
  func increments() async throws {
    let ref = Database.inMemory().reference().child("p")
    let lines = try await change(
      ["n": 5, "list": [10, 20], "pri": [".value": 1, ".priority": 4], "text": "s"], at: ref
    ) { data in
      let n = data.childData(byAppendingPath: "n")
      n.value = 100
      n.value = ServerValue.increment(2)
      var lines = [shown(n.value)]
      n.value = ServerValue.increment(3)
      lines.append(shown(n.value))
      data.childData(byAppendingPath: "list").value = [
        ServerValue.increment(1), ServerValue.increment(0.5),
      ]
      data.childData(byAppendingPath: "new/deep").value = ServerValue.increment(7)
      data.childData(byAppendingPath: "text").value = ServerValue.increment(1)
      data.childData(byAppendingPath: "pri").priority = ServerValue.increment(1)
      return lines
    }
    #expect(lines == ["7", "8"])
    #expect(
      shown(try await ref.getData().valueInExportFormat())
        == "{list:{0:11,1:20.5},n:8,new:{deep:7},pri:{.priority:5,.value:1},text:1}")
  }

  @Test("timestamps are one time for all, and stay themselves when handed back")
  func timestamps() async throws {
    let ref = Database.inMemory().reference().child("p")
    let lines = try await change(["old": 1, "list": ["x", "y"]], at: ref) { data in
      data.childData(byAppendingPath: "at").value = ServerValue.timestamp()
      data.childData(byAppendingPath: "list/1").value = ServerValue.timestamp()
      data.childData(byAppendingPath: "old").priority = ServerValue.timestamp()
      data.childData(byAppendingPath: "gone").value = ServerValue.timestamp()
      data.childData(byAppendingPath: "gone").value = nil
      data.childData(byAppendingPath: "plain").value = ServerValue.timestamp()
      data.childData(byAppendingPath: "plain").value = 1
      data.childData(byAppendingPath: "branch").value = ServerValue.timestamp()
      data.childData(byAppendingPath: "branch/a").value = 2
      let lines = [
        shown(data.childData(byAppendingPath: "at").value),
        shown(data.childData(byAppendingPath: "list").value),
        shown(data.childData(byAppendingPath: "old").priority),
        shown(data.value),
      ]
      // Handing back the whole drops the priority, as it does with any value.
      data.value = data.value as? [String: AnyObject]
      return lines
    }
    let timestamp = "{.sv:\"timestamp\"}"
    #expect(
      lines == [
        timestamp, "[\"x\",\(timestamp)]", timestamp,
        "{at:\(timestamp),branch:{a:2},list:[\"x\",\(timestamp)],old:1,plain:1}",
      ])
    let snapshot = try await ref.getData()
    let time = try #require(snapshot["at"].int)
    #expect(time > 1_600_000_000_000)
    #expect(snapshot["list/1"].int == time)
    #expect(shown(snapshot["old"].valueInExportFormat()) == "1")
    #expect(snapshot.childrenCount == 5)

    try await change(["old": 1], at: ref) { data in
      data.childData(byAppendingPath: "old").priority = ServerValue.timestamp()
      data.value = [".value": ServerValue.timestamp(), ".priority": ServerValue.timestamp()]
      data.priority = 1
      data.priority = ServerValue.timestamp()
      return []
    }
    let leaf = try await ref.getData()
    #expect(leaf.int ?? 0 >= time && leaf.priority as? Int == leaf.int)
  }
}
