import Dendro
import Testing

private typealias Database = SampleDatabase

@Suite("ComingFromFirebase.md")
struct ComingFromFirebaseSamples {
  @Test("the first write")
  func first() async throws {
    #expect(shown(try await write().getData().value) == #"{users:{ada:{name:"Ada"}}}"#)
  }

  private func write() -> DatabaseReference {
    // sample
    let ref = Database.database().reference()
    ref.child("users/ada").setValue(["name": "Ada"])
    // end
    return ref
  }
}
