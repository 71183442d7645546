import Dendro
import Testing

/// Containers where none may be, far deeper than the stack would bear.
@Suite("Deep containers in the wrong place")
struct DeepRefusalTests {
  private static func nested(inArrays: Bool) -> Any {
    var value: Any = 1
    for _ in 0..<20_000 { value = inArrays ? [value] as Any : ["a": value] as Any }
    return value
  }

  @Test("are refused, not gone through", arguments: [".priority", ".value", ".sv"], [true, false])
  func write(key: String, inArrays: Bool) async throws {
    let root = Database.inMemory().reference()
    let value: [String: Any] = [key: Self.nested(inArrays: inArrays)]
    await #expect(throws: DatabaseError.self) { try await root.setValue(value) }
    #expect(try await !root.getData().exists())
  }

  @Test("are refused as bounds", arguments: [true, false])
  func bound(inArrays: Bool) async throws {
    let root = Database.inMemory().reference()
    let query = root.queryStarting(atValue: Self.nested(inArrays: inArrays))
    await #expect(throws: DatabaseError.self) { try await query.getData() }
  }
}
