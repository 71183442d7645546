import DendroPlatform
import DendroTestSupport
import Testing

@testable import DendroServer

@Suite("serving: files that change")
struct FileVersionTests {
  @Test("a file whose rights have changed is another one, which may be read now")
  func rights() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write("some.pem", "text")
    let before = FileVersion(of: path)
    #expect(before != nil && before == FileVersion(of: path))
    #expect(chmod(path, 0o400) == 0)
    #expect(before != FileVersion(of: path))
  }
}
