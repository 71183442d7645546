import Dendro
import Testing

@testable import DendroSync

/// Servers that are connected, and say nothing.
@Suite("synced databases: silent servers")
struct SilentServerTests {
  @Test(
    "a server that does not greet is left, and connected to again",
    arguments: [false, true])
  func noHello(changesOver: Bool) async throws {
    let server = try ScriptedServer()
    let log = LogLines()
    var limits = SyncLimits()
    limits.connectTimeout = .seconds(2)
    let database = synced(server.port, limits: limits) { $0.logging = { log.note($0) } }
    let head = try server.take()
    if changesOver { try server.changeOver(head) }
    // It is the client that ends it.
    try server.framesUntilEnd()
    _ = try server.take()
    try await eventually { log.contains("it took too long") }
    try await database.close()
  }

  @Test(
    "a server that has stopped is left and connected to again, though its system still takes all",
    arguments: [false, true])
  func stopped(isWrittenTo: Bool) async throws {
    let server = try ScriptedServer()
    let log = LogLines()
    var limits = SyncLimits()
    limits.keepAliveInterval = .milliseconds(20)
    limits.answerTimeout = .milliseconds(300)
    let database = synced(server.port, limits: limits) { $0.logging = { log.note($0) } }
    try server.accept()
    let writing = Task {
      while isWrittenTo, !Task.isCancelled {
        database.reference(withPath: "a").setValue(1, withCompletionBlock: { _, _ in })
        try await Task.sleep(for: .milliseconds(5))
      }
    }
    #expect(try server.framesUntilEnd().contains(0x9))
    _ = try server.take()
    writing.cancel()
    try await eventually { log.contains("the server does not answer") }
    try await database.close()
  }

  @Test("a server that answers pings, or says anything else, stays connected")
  func alive() async throws {
    let server = try ScriptedServer()
    var limits = SyncLimits()
    limits.keepAliveInterval = .milliseconds(20)
    let database = synced(server.port, limits: limits)
    try server.accept()
    for round in 0..<6 {
      // There is another ping only if the last one counts as answered.
      try server.awaitPing()
      try server.send(round.isMultiple(of: 2) ? 0xA : 0x1, round.isMultiple(of: 2) ? [] : [0x30])
    }
    database.reference(withPath: "a").setValue(1, withCompletionBlock: { _, _ in })
    let (number, _, _) = try server.request()
    try server.answer(number)
    try await database.waitForPendingWrites()
    try await database.close()
  }

  @Test("a client that is silent itself says that it is there")
  func keepAlive() async throws {
    let server = try ScriptedServer()
    var limits = SyncLimits()
    limits.keepAliveInterval = .milliseconds(20)
    let database = synced(server.port, limits: limits)
    try server.accept()
    try server.awaitKeepAlive()
    try await database.close()
  }
}
