import DendroRules
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroServer

/// Files that a server reads again when they have changed, while the process has no descriptor for them, or the disk no answer.
@Suite("serving: files that cannot be read for a while")
struct UnreadableFileTests {
  private let folder: TemporaryFolder
  private let disk = Disk()

  /// Reads files, or does not.
  private final class Disk: Sendable {
    let refuses = Mutex(false)
    let readCount = Mutex(0)
    let complaints = Mutex<[String]>([])

    var reader: BoundedFile.Reader {
      { [self] path, limit, followsLink in
        readCount.withLock { $0 += 1 }
        if refuses.withLock({ $0 }) { return nil }
        return BoundedFile.contents(of: path, byteLimit: limit, followsLink: followsLink)
      }
    }

    func report(_ sentence: String) { complaints.withLock { $0.append(sentence) } }
  }

  init() throws { folder = try TemporaryFolder() }

  @Test("rules that have changed meanwhile come into force once they can be read")
  func rules() throws {
    let path = try folder.write("rules.json", "{\"rules\":{\".read\":true}}")
    let file = RulesFile(path, reader: disk.reader, disk.report)
    let new = "{\"rules\":{\".read\":false}}"
    _ = try folder.write("rules.json", new)
    disk.refuses.withLock { $0 = true }
    for _ in 0..<3 { #expect(!file.refresh()) }
    #expect(file.current.text != new)
    let sentence =
      "the file \(path) cannot be read. The rules that it had stay in force."
    #expect(disk.complaints.withLock { $0 } == [sentence])
    disk.refuses.withLock { $0 = false }
    #expect(file.refresh())
    #expect(file.current.text == new)
    #expect(!file.refresh())
    #expect(disk.complaints.withLock { $0.count } == 1)
  }

  @Test("rules that could not be read at the start come into force once they can be")
  func firstRules() throws {
    let path = try folder.write("rules.json", "{\"rules\":{\".read\":true}}")
    disk.refuses.withLock { $0 = true }
    let file = RulesFile(path, reader: disk.reader, disk.report)
    #expect(!file.refresh())
    #expect(file.current.rules == nil)
    disk.refuses.withLock { $0 = false }
    #expect(file.refresh())
    #expect(file.current.rules != nil)
    #expect(disk.complaints.withLock { $0.count } == 1)
  }

  @Test("a file of keys that has none is not read for each token; one that cannot be read is")
  func keys() throws {
    let path = try folder.write("keys.json", SignedTokens.keySet)
    let file = try KeySetFile(path, reader: disk.reader, report: disk.report)
    _ = try folder.write("keys.json", "no keys")
    let before = disk.readCount.withLock { $0 }
    for _ in 0..<100 { #expect(file.keys != nil) }
    #expect(disk.readCount.withLock { $0 } == before + 1)
    _ = try folder.write("keys.json", SignedTokens.keySet + " ")
    disk.refuses.withLock { $0 = true }
    for _ in 0..<2 { #expect(file.keys != nil) }
    disk.refuses.withLock { $0 = false }
    #expect(file.keys != nil)
    #expect(disk.readCount.withLock { $0 } == before + 4)
    for _ in 0..<100 { #expect(file.keys != nil) }
    #expect(disk.readCount.withLock { $0 } == before + 4)
  }

  @Test("a certificate that was renewed meanwhile is used once it can be read")
  func certificate() throws {
    let options = TLSOptions(
      certificateFile: try folder.write("server.pem", TestCertificate.one.certificate),
      keyFile: try folder.write("server.key", TestCertificate.one.key))
    let now: Int64 = 2_000_000_000
    let files = try CertificateFiles(options, now: now, reader: disk.reader, report: disk.report)
    let old = files.certificate
    _ = try folder.write("server.pem", TestCertificate.two.certificate)
    _ = try folder.write("server.key", TestCertificate.two.key)
    disk.refuses.withLock { $0 = true }
    for _ in 0..<4 { files.refresh(now: now) }
    #expect(files.certificate === old)
    #expect(
      disk.complaints.withLock { $0 } == [
        "the certificate of before stays: \(options.certificateFile) cannot be read"
      ])
    disk.refuses.withLock { $0 = false }
    for _ in 0..<2 { files.refresh(now: now) }
    #expect(files.certificate !== old)
    #expect(disk.complaints.withLock { $0.count } == 1)
  }
}
