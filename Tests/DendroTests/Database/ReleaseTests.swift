import Dendro
import DendroPlatform
import Foundation
import Testing

/// When the directory of a database is free again.
@Suite("A directory given back")
struct ReleaseTests {
  @Test(
    "every close() returns once the directory is free, however many there are", arguments: 0..<20)
  func closingAtOnce(round: Int) async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(at: directory.path)
    try await database.reference().setValue(round)
    let failures = await withTaskGroup(of: String?.self) { group in
      for index in 0..<8 {
        group.addTask {
          do {
            if index % 2 == 0 {
              try await database.close()
            } else {
              try plainly { try database.close() }
            }
            return isFree(directory.path) ? nil : "the directory is held"
          } catch {
            return "\(error)"
          }
        }
      }
      return await group.reduce(into: []) { if let failure = $1 { $0.append(failure) } }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test("a database whose last reference went can be opened again at once", arguments: 0..<20)
  func released(round: Int) async throws {
    let directory = TemporaryDirectory()
    for number in 0..<5 {
      let database = try await Database.open(at: directory.path)
      let ref = database.reference()
      #expect(try await ref.getData().int ?? -1 == number - 1)
      try await ref.setValue(number)
    }
    func openPlainly() throws {
      let database = try Database.open(at: directory.path)
      database.reference().child("x").setValue(1)
    }
    for _ in 0..<5 { try openPlainly() }
  }
}

/// Whether no process holds the directory, this one included.
private func isFree(_ directory: String) -> Bool {
  let descriptor = open(directory + "/dendro.lock", O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return false }
  defer { _ = close(descriptor) }
  return flock(descriptor, LOCK_SH | LOCK_NB) == 0
}
