import DendroPlatform
import Foundation
import Testing

/// Without a PostgreSQL.
@Suite("dendro: serve --cluster, cluster")
struct ClusterCommandTests {
  private let dendro: Tool
  init() throws { dendro = Tool(folder: try Folder()) }

  /// Where nothing listens.
  private static let nowhere = "postgresql://u:s3cret@127.0.0.1:1/none"

  static let misuses: [([String], String)] = [
    (["serve", "--memory", "--cluster", nowhere], "--memory contradicts --cluster"),
    (["serve", "d", "--import", "x", "--cluster", nowhere], "--import contradicts --cluster"),
    (["serve", "d", "--durability", "none", "--cluster", nowhere], "--durability contradicts"),
    (["serve", "--cluster", nowhere], "DIRECTORY is missing"),
    (["serve", "db", "--cluster", nowhere], "db is one database"),
    (["serve", "d", "--cluster", ""], "--cluster is empty"),
    (["serve", "d", "--cluster", "nonsense"], "--cluster: it is neither a postgresql:// URL"),
    (["serve", "d", "--advertise", "a:1"], "--advertise needs --cluster"),
    (["serve", "d", "--lines", "1"], "--lines needs --cluster"),
    (["serve", "d", "--cluster", nowhere, "--lines", "x"], "--lines takes PORT"),
    (["serve", "d", "--cluster", nowhere, "--lines", ":1"], "--lines takes PORT"),
    (["serve", "d", "--cluster", nowhere, "--advertise", "a b"], "--advertise takes HOST"),
    (["cluster", "status"], "ADDRESS is missing, and DENDRO_CLUSTER is not set"),
    (["cluster", "grow", nowhere], "ACTION is status, "),
    (["cluster", "restore"], "DIRECTORY is missing"),
    (["cluster", "accept-loss", ""], "DIRECTORY is empty"),
    (["cluster", "restore", "d"], "ADDRESS is missing, and DENDRO_CLUSTER is not set"),
    (["cluster", "restore", "d", nowhere, "more"], "one word too many: 'more'"),
    (["cluster", "verify"], "NAMESPACE is missing"), (["cluster", "drain"], "SERVER is missing"),
    (["cluster", "move", "app"], "SERVER is missing"),
    (["cluster", "drain", "a", "--dry-run", nowhere], "'cluster drain' has no option '--dry-run'"),
    (["cluster", "move", "--end"], "NAMESPACE is missing"),
    (["cluster", "move", "app", nowhere, "more", "--end"], "one word too many: 'more'"),
    (["cluster", "verify", "app", "--end"], "'cluster verify' has no option '--end'"),
    (["cluster", "status", nowhere, "more"], "one word too many: 'more'"),
    (["cluster", "status", nowhere, "--dry-run"], "'cluster status' has no option '--dry-run'"),
  ]

  @Test("misuse is an error, with exit code 64", arguments: misuses)
  func misuse(words: [String], message: String) throws {
    try dendro("set", "db", "/x", "1")
    let outcome = try dendro.run(words)
    #expect(outcome.status == 64)
    #expect(outcome.errors.contains(message), "\(outcome.errors)")
    #expect(!outcome.errors.contains("s3cret"))
  }

  @Test("an address that is not this machine's takes no lines")
  func otherHost() throws {
    let outcome = try dendro(
      "serve", "d", "--cluster", Self.nowhere, "--lines", "192.0.2.1:1")
    #expect(outcome.status == 69)
    #expect(outcome.errors.contains("listen at 192.0.2.1:1"), "\(outcome.errors)")
  }

  @Test("the environment has the address as well")
  func environment() throws {
    let set = ["DENDRO_CLUSTER": Self.nowhere]
    let outcome = try dendro("serve", "--memory", environment: set)
    #expect(outcome.status == 64)
    #expect(outcome.errors.contains("--memory contradicts DENDRO_CLUSTER"), "\(outcome.errors)")
    let status = try dendro("cluster", "status", "--json", environment: set)
    #expect(status.status == 69)
    #expect(status.errors.contains("PostgreSQL cannot be reached"), "\(status.errors)")
    #expect(!status.errors.contains("s3cret"))
  }

  @Test("libpq is loaded by commands that need it, which say if it cannot be opened")
  func library() throws {
    // Instead of running it, the system's loader lists what it loads.
    let loaded = try dendro("--version", environment: ["LD_TRACE_LOADED_OBJECTS": "1"])
    #expect(loaded.output.contains("liblz4"), "\(loaded.output)")
    #expect(!loaded.output.contains("libpq"), "\(loaded.output)")

    let folder = dendro.folder.path + "/libraries"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: folder + "/libpq.so.5"))
    let spoiled = ["LD_LIBRARY_PATH": folder]
    #expect(try dendro("--version", environment: spoiled).status == 0)
    let outcome = try dendro("cluster", "status", Self.nowhere, environment: spoiled)
    #expect(outcome.status == 69)
    #expect(
      outcome.errors.contains("libpq, the client library of PostgreSQL, cannot be opened: "),
      "\(outcome.errors)")
  }

  @Test("a server starts although PostgreSQL cannot be reached, and says so")
  func unreachable() throws {
    let server = try dendro.start(
      ["serve", "data", "--port", "0", "--json", "--advertise", "here.example"],
      environment: ["DENDRO_CLUSTER": Self.nowhere])
    #expect(server.waitForOutput("\n"))
    let line = server.text(server.output)
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    let port = UInt16(try #require(object?["port"] as? Int))
    #expect(object?["advertised"] as? String == "http://here.example:\(port)")
    let answer = try Tool.request("GET", port, "/.json?ns=other")
    #expect(answer.status == 503)
    #expect(answer.body.contains("The database is not available now."), "\(answer.body)")
    #expect(try Tool.request("GET", port, "/.leader").status == 503)
    server.send(SIGTERM)
    let end = try server.wait()
    #expect(end.status == 0)
    #expect(end.errors.contains("the database cannot be opened"), "\(end.errors)")
    #expect(!end.errors.contains("s3cret"))
  }
}
