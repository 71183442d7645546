import DendroRules
import Testing

@Suite("JSON values and trees")
struct JSONTests {
  @Test("claims keep names of any kind, and the last of two values")
  func values() throws {
    let value = try JSONValue(
      parsing:
        "{\"a.b\":{\"/\":1.5,\"\":null},\"e\u{301}\":1,\"\u{e9}\":2,\"x\":1,\"x\":[true,\"s\",-0,1e3]}"
    )
    #expect(value["a.b"]["/"] == .scalar(.double(1.5)))
    #expect(value["a.b"][""] == nil)
    #expect(value["e\u{301}"] == 1)
    #expect(value["\u{e9}"] == 2)
    #expect(value["x"] == [true, "s", .scalar(.double(-0.0)), 1000])
    #expect(value["x"]["0"] == nil && value["none"] == nil)
    #expect(JSONValue.scalar("s").string == "s" && value.string == nil)
    guard case .object(let object) = value else { return #expect(Bool(false)) }
    #expect(object.count == 4)
    #expect(object.names.map(\.unicodeScalars.count) == [3, 2, 1, 1])
  }

  @Test(
    "claims are strict JSON", arguments: ["{\"a\":1,}", "// x\n1", "\"\t\"", "1e999", "[1", "nul"])
  func strict(text: String) {
    #expect(throws: RuleTextError.self) { try JSONValue(parsing: text) }
  }

  @Test("scalars equal as the data model has it")
  func scalars() {
    #expect(
      RuleScalar.integer(1) == .double(1)
        && RuleScalar.integer(1).hashValue == RuleScalar.double(1).hashValue)
    #expect(RuleScalar.string("e\u{301}") != .string("\u{e9}"))
    #expect(RuleScalar.boolean(true) != 1)
  }

  @Test("trees are read, changed and refused")
  func trees() throws {
    let tree = try JSONTree("{\"a\":{\".value\":1,\".priority\":\"p\"},\"l\":[1,2]}")
    #expect(tree.child("a").scalar == 1 && tree.child("a").priority == "p")
    #expect(tree.child("l").child("1").scalar == 2)
    #expect(!tree.child("a.b").exists && !tree.child("zz").exists && tree.exists)
    #expect(try tree.setting("a", to: "null").description == "{\"l\":[1,2]}")
    #expect(
      try tree.updating("", with: "{\"a/b\":1,\"l/0\":null}").child("a").child("b").scalar == 1)
    #expect(try tree.settingPriority("l", to: "3").child("l").priority == 3)
    #expect(try tree.setting("t", to: "{\".sv\":\"timestamp\"}", now: 9).child("t").scalar == 9)
    #expect(throws: JSONTreeError.self) { try JSONTree("{") }
    #expect(throws: JSONTreeError.self) { try JSONTree("{\"a#\":1}") }
    #expect(throws: JSONTreeError.self) { try tree.setting("a.b", to: "1") }
    #expect(throws: JSONTreeError.self) { try tree.updating("", with: "{\"a\":1,\"a/b\":1}") }
  }
}
