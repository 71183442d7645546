import Dendro
import Testing

extension ConnectionTests {
  @Test("the sample of Durability.md")
  func sample() async throws {
    // sample
    let status = database.reference(withPath: "status/ada")
    try await status.setValue("here")
    try await status.onDisconnectSetValue(["left": ServerValue.timestamp()])
    database.goOffline()
    print(try await status.child("left").getData().exists())  // prints true
    // end
    #expect(try await status.child("left").getData().exists())
  }
}
