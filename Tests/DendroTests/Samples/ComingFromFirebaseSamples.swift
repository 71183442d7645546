import Dendro
import Testing

@Suite("ComingFromFirebase.md")
struct ComingFromFirebaseSamples {
  /// Compiled, not run: it would open the user's default database.
  static func first() {
    // sample
    let ref = Database.database().reference()
    ref.child("users/ada").setValue(["name": "Ada"])
    // end
  }
}
