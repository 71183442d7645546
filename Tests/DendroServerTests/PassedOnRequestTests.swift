import DendroProtocol
import DendroTestSupport
import DendroTree
import Testing

@testable import DendroServer

@Suite("Requests that servers pass on")
struct PassedOnRequestTests {
  private static let opening = WriteResults.Opening(
    user: try! Key("u:ann"), client: try! Key("phone"), incarnation: try! Key("7"))
  private static let numbered = PassedOnWrite.Numbered(
    id: WriteResults.ID(opening: opening, number: 12), client: "phone", lowest: 3,
    digest: "d1g35t", address: "127.0.0.1")

  private static let examples: [PassedOnWrite] = {
    var writes: [PassedOnWrite] = []
    let identities: [Identity?] = [
      Identity.anonymous, .administrator, .user(id: "ann", claims: #"{"a/b.c":["é",null]}"#),
      .standIn("null"),
    ]
    for identity in identities.compactMap(\.self) {
      let plain = PassedOnWrite(identity: identity, path: Path.root)
      var full = PassedOnWrite(identity: identity, path: try! Path(parsing: "rooms/ä ö/1"))
      full.session = "s3ss10n"
      full.alsoReads = true
      full.wantsTrace = true
      full.condition = .init(kind: .etag, isPriority: true, value: "null_etag")
      full.numbered = numbered
      var hashed = plain
      hashed.condition = .init(kind: .hash, isPriority: false, value: "")
      writes += [plain, full, hashed]
    }
    return writes
  }()

  @Test("what is passed on is what arrives", arguments: 0..<12)
  func writes(index: Int) throws {
    let write = Self.examples[index]
    guard case .write(let read) = PassedOnRequest(PassedOnRequest.write(write).bytes) else {
      Issue.record("it cannot be read")
      return
    }
    #expect(Registrant(read.identity) == Registrant(write.identity))
    #expect(read.path == write.path)
    #expect(read.session == write.session)
    #expect(read.alsoReads == write.alsoReads)
    #expect(read.wantsTrace == write.wantsTrace)
    #expect(read.condition == write.condition)
    #expect(read.numbered?.id.number == write.numbered?.id.number)
    #expect(read.numbered?.id.opening == write.numbered?.id.opening)
    #expect(read.numbered?.lowest == write.numbered?.lowest)
    #expect(read.numbered?.digest == write.numbered?.digest)
    #expect(read.numbered?.address == write.numbered?.address)
  }

  @Test("the end of a session is passed on")
  func end() {
    guard case .endOfSession("abc") = PassedOnRequest(PassedOnRequest.endOfSession("abc").bytes)
    else {
      Issue.record("it cannot be read")
      return
    }
  }

  private func isRefused(_ bytes: [UInt8]) -> Bool {
    if case nil = PassedOnRequest(bytes) { true } else { false }
  }

  @Test("any beginning of a request, and any with a changed byte, is read or refused")
  func damage() {
    for write in Self.examples {
      let bytes = PassedOnRequest.write(write).bytes
      for count in bytes.indices { _ = PassedOnRequest(Array(bytes.prefix(count))) }
      for index in bytes.indices {
        for byte in [0, 1, 0x7F, 0x80, 0xFF] as [UInt8] {
          var changed = bytes
          changed[index] = byte
          _ = PassedOnRequest(changed)
        }
      }
    }
    #expect(isRefused([]))
    // The first length is more than there is, or more than there can be.
    #expect(isRefused([5, 0x61]))
    #expect(isRefused([UInt8](repeating: 0xFF, count: 9) + [1]))
  }
}
