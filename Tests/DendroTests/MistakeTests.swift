import Dendro
import DendroTestSupport
import Foundation
import Testing

/// Each row of the table of typical mistakes in Troubleshooting.md says what really comes.
@Suite("Typical mistakes")
struct MistakeTests {
  private let directory = TemporaryDirectory()

  /// The messages that the table quotes, in its order.
  private static let quoted: [String] = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let file = root.appendingPathComponent("Sources/Dendro/Dendro.docc/Troubleshooting.md")
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    let section =
      text.components(separatedBy: "## Typical mistakes").last?
      .components(separatedBy: "\n## ").first ?? ""
    return section.split(separator: "\n").filter { $0.hasPrefix("|") && $0.contains("«") }
      .compactMap {
        $0.split(separator: "«").dropFirst().first?.split(separator: "»").first.map(String.init)
      }
  }()

  private final class User {}

  private struct Settings: Codable {
    var size: Int??
  }

  @Test("the table quotes the messages that come")
  func messages() async throws {
    var options = DatabaseOptions()
    options.transactionTimeLimit = .milliseconds(500)
    let database = try await Database.open(at: directory.path, options: options)
    let ref = database.reference().child("a")
    var messages: [String] = []
    func note(_ body: () async throws -> Void) async {
      messages.append(await failure { try await body() }?.message ?? "nothing")
    }
    await note { try await database.reference(withPath: "users/ada.l").setValue(1) }
    await note { try await ref.setValue(Double.nan) }
    await note { try await ref.setValue(["at": Date()]) }
    await note { try await ref.setValue(from: Settings(size: .some(nil))) }
    await note { try await ref.setValue(User()) }
    await note {
      do {
        _ = try await Database.open(at: directory.path)
      } catch let error as DatabaseError {
        #expect(error.code == .locked)
        messages.append(
          error.message.replacing(directory.path, with: "DIRECTORY")
            .replacing("\(ProcessInfo.processInfo.processIdentifier)", with: "PID"))
      }
    }
    messages.removeAll { $0 == "nothing" }
    let other = Database.inMemory()
    try await other.close()
    await note { try await other.reference().setValue(1) }
    await note { try await ref.setValue(String(repeating: "x", count: 11_000_000)) }
    try await ref.setValue("text")
    do {
      _ = try await ref.getData(as: Int.self)
    } catch DecodingError.typeMismatch(_, let context) {
      #expect(context.codingPath.map(\.stringValue) == ["a"])
      messages.append(context.debugDescription)
    }
    await note {
      try await ref.transaction { data in
        // Waits for a write that waits for this.
        let isWritten = DispatchSemaphore(value: 0)
        ref.setValue("overtaking") { _, _ in isWritten.signal() }
        isWritten.wait()
        data.value = 1
      }
    }
    try await database.close()
    for (message, quoted) in zip(messages, Self.quoted) { #expect(message == quoted) }
    #expect(messages.count == Self.quoted.count)
  }
}
