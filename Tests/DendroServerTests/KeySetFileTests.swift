import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroServer

@Suite("serving: the keys of tokens in a file")
struct KeySetFileTests {
  private final class Complaints: Sendable { let all = Mutex<[String]>([]) }

  @Test("while the file is broken or gone the keys before stay, and that is said once each")
  func broken() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write("keys.json", SignedTokens.keySet)
    let complaints = Complaints()
    let file = try KeySetFile(path) { complaint in complaints.all.withLock { $0.append(complaint) }
    }
    func look() {
      for _ in 0..<3 {
        file.refresh(at: 0)
        #expect(file.keys != nil)
      }
    }
    look()
    #expect(complaints.all.withLock { $0 } == [])
    _ = try folder.write("keys.json", "no keys")
    look()
    try FileManager.default.removeItem(atPath: path)
    look()
    let before = "the previous keys stay in use:"
    #expect(
      complaints.all.withLock { $0 } == [
        "\(before) \(path) has no public RSA key of at least 2048 bits",
        "\(before) the keys in \(path) cannot be read",
      ])
    _ = try folder.write("keys.json", SignedTokens.keySet)
    look()
    #expect(complaints.all.withLock { $0 }.count == 2)
  }
}
