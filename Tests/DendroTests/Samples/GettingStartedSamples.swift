import Dendro
import Testing

private typealias Database = SampleDatabase

@Suite("GettingStarted.md")
struct GettingStartedSamples {
  @Test("a directory")
  func open() async throws {
    let directory = TemporaryDirectory()
    try await SampleDatabase.$root.withValue(directory.path) {
      // sample
      let database = try await Database.open(at: "/var/lib/blog/data")
      // end
      #expect(database.directory?.hasSuffix("/var/lib/blog/data") == true)
      try await database.close()
    }
  }

  @Test("write, read, listen")
  func everything() async throws {
    let database = Database.inMemory()
    // sample
    let root = database.reference()
    let ada = root.child("users/ada")

    try await ada.setValue(["name": "Ada", "born": 1815])  // replaces all that was there
    try await ada.updateChildValues(["born": 1816, "tags/math": true])  // these paths only
    try await ada.child("visits").setValue(ServerValue.increment(1))  // atomic
    try await ada.child("tags").removeValue()
    let note = root.child("notes").childByAutoId()  // a new key, in the order of time
    try await note.setValue(["text": "…", "at": ServerValue.timestamp()])
    // end
    // sample
    let snapshot = try await ada.getData()
    print(snapshot["name"].string ?? "nobody")  // prints Ada
    print(snapshot["born"].int ?? 0, snapshot.exists())  // prints 1816 true
    for child in snapshot { print(child.key, child.value ?? "") }
    // end
    #expect(shown(snapshot.value) == #"{born:1816,name:"Ada",visits:1}"#)
    // sample
    let handle = root.child("users").observe(.value) { snapshot in
      print(snapshot.childrenCount, "users")
    }
    root.child("notes").observe(.childAdded) { note in
      print(note.key, note["text"].string ?? "")
    }
    root.child("users").removeObserver(withHandle: handle)
    // end
    root.child("notes").removeAllObservers()
  }
}
