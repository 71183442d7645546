import Foundation
import Testing

/// Every Swift block of every article is a piece of a test that was compiled: the blocks of an article
/// `Name.md`, in order, are the pieces of `NameSamples.swift` in this folder between the lines
/// `// sample` and `// end`, word for word but for the indentation and `fileprivate`. Lines at the beginning of a block
/// that import a module stand at the beginning of the file instead. The samples of the server, of rules and of synced
/// databases are among the tests of those modules.
@Suite("Articles")
struct ArticleTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The articles with Swift in them, by name.
  private static let articles: [String: [String]] = {
    var articles: [String: [String]] = [:]
    let sources = root.appendingPathComponent("Sources").path
    let files = FileManager.default.enumerator(atPath: sources)
    while let file = files?.nextObject() as? String {
      guard file.hasSuffix(".md"), let text = try? text(of: "Sources/" + file) else { continue }
      let found = blocks(in: text)
      if !found.isEmpty {
        articles[String(file.split(separator: "/").last!.dropLast(".md".count))] = found
      }
    }
    return articles
  }()

  private static func text(of file: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
  }

  private static func lines(of text: String) -> [Substring] {
    text.split(separator: "\n", omittingEmptySubsequences: false)
  }

  private static func blocks(in text: String) -> [String] {
    var blocks: [String] = []
    var block: [Substring]?
    for line in lines(of: text) {
      if line == "```swift" {
        block = []
      } else if line == "```", let lines = block {
        let rest = lines.drop { $0.hasPrefix("import ") || $0.isEmpty }
        blocks.append(rest.joined(separator: "\n"))
        block = nil
      } else {
        block?.append(line)
      }
    }
    return blocks
  }

  private static func samples(in text: String) -> [String] {
    var samples: [String] = []
    var sample: (indentation: Int, lines: [Substring])?
    for line in lines(of: text) {
      let words = line.drop { $0 == " " }
      if words == "// sample" {
        sample = (line.count - words.count, [])
      } else if words == "// end", let (_, lines) = sample {
        samples.append(lines.joined(separator: "\n"))
        sample = nil
      } else if let indentation = sample?.indentation {
        // Several files of the tests may declare the same.
        let text = line.dropFirst(min(indentation, line.count - words.count))
        sample?.lines.append(
          text.contains("fileprivate ") ? Substring(text.replacing("fileprivate ", with: "")) : text
        )
      }
    }
    return samples
  }

  @Test("show what was compiled", arguments: articles.keys.sorted())
  func compiled(article: String) throws {
    let blocks = try #require(Self.articles[article])
    let others = [
      "DendroServer": "DendroServerTests", "DendroRules": "DendroRulesTests",
      "DendroSync": "DendroSyncTests", "SyncedDatabases": "DendroSyncTests",
      "DendroCluster": "DendroClusterTests",
    ]
    let folder = others[article] ?? "DendroTests/Samples"
    let file = "Tests/\(folder)/\(article)Samples.swift"
    let samples = Self.samples(in: try Self.text(of: file))
    #expect(blocks.count == samples.count, "blocks of \(article).md and pieces of \(file)")
    for (number, (block, sample)) in zip(blocks, samples).enumerated() {
      #expect(block == sample, "block \(number + 1) of \(article).md is not that of \(file)")
    }
  }

  @Test("there are some, and no piece is of an article that has gone")
  func complete() throws {
    #expect(Self.articles.count >= 5)
    let folder = Self.root.appendingPathComponent("Tests/DendroTests/Samples").path
    for file in try FileManager.default.contentsOfDirectory(atPath: folder)
    where file.hasSuffix("Samples.swift") {
      let article = String(file.dropLast("Samples.swift".count))
      #expect(Self.articles[article] != nil, "\(file) has no article")
    }
  }
}
