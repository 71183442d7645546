import Dendro
import DendroPlatform
import DendroTesting
import Foundation
import Testing

/// The chat server as its developer tests it.
@Suite("A chat server")
struct ChatTests {
  private func chat() async throws -> Chat { try await Chat.open(.inMemory()) }

  @Test("rooms, messages, unread counters and leaders")
  func messages() async throws {
    let chat = try await chat()
    let tea = try await chat.makeRoom("Tea", for: "ada")
    let art = try await chat.makeRoom("Art", for: "ben")
    #expect(try await chat.rooms().map(\.value.name) == ["Art", "Tea"])
    try await chat.join(tea, as: "ben")
    try await chat.join(tea, as: "cy")
    for number in 1...60 { try await chat.send("\(number)", to: tea, from: "ada") }
    try await chat.send("hello", to: tea, from: "ben")
    var last = chat.lastMessages(in: tea).makeAsyncIterator()
    let shown = try #require(try await last.next())
    #expect(shown.count == 50 && shown.first?.value.text == "12")
    #expect(shown.last?.value.text == "hello" && shown.last?.value.sentAt != nil)
    let id = try await chat.send("bye", to: tea, from: "ben")
    #expect(try await last.next()?[key: id]?.text == "bye")
    #expect(try await chat.unread(by: "cy") == [tea: 62])
    #expect(try await chat.unread(by: "ben") == [tea: 60])
    try await chat.markAsRead(tea, by: "cy")
    #expect(try await chat.unread(by: "cy").isEmpty)
    #expect(try await chat.leaders().map(\.name) == ["ada", "ben"])
    await #expect(throws: Chat.Problem.noMember("ada")) {
      try await chat.send("x", to: art, from: "ada")
    }
    await #expect(throws: Chat.Problem.noSuchRoom("none")) { try await chat.join("none", as: "cy") }
  }

  @Test("who is there, until the connection ends")
  func presence() async throws {
    let chat = try await chat()
    let ada = try await chat.connect("ada")
    let phone = try await chat.connect("ada")
    #expect(try await chat.online() == ["ada"])
    try await ada.end()
    #expect(try await chat.online() == ["ada"])
    try await phone.end()
    #expect(try await chat.online().isEmpty)
  }

  @Test("data of the first version are brought to the present one")
  func migration() async throws {
    let database = Database.inMemory()
    try await database.reference().setValue([
      "rooms": ["r1": ["name": "Tea", "members": ["ada", "ben"]]], "online": ["ada": true],
    ])
    let chat = try await Chat.open(database)
    #expect(try await chat.rooms()[key: "r1"]?.members == ["ada": true, "ben": true])
    #expect(try await chat.online().isEmpty)
    try await chat.send("still here", to: "r1", from: "ben")
  }

  @Test("no answered message is lost by any crash, and each is counted as often as it is there")
  func crashes() async throws {
    try await CrashTest(seed: 1).run { disk in
      let chat = try await Chat.open(Database.open(at: "/chat", on: disk))
      let room = try await chat.makeRoom("Tea", for: "ada")
      try await chat.join(room, as: "ben")
      for text in ["one", "two"] {
        try await chat.send(text, to: room, from: "ada")
        disk.acknowledge(text)
      }
      try await chat.database.close()
    } check: { crash in
      let chat = try await Chat.open(Database.open(at: "/chat", on: crash.disk()))
      let rooms = try await chat.rooms()
      var texts: [String] = []
      if let room = rooms.first {
        var last = chat.lastMessages(in: room.key).makeAsyncIterator()
        texts = try await last.next()?.map(\.value.text) ?? []
        let unread = try await chat.unread(by: "ben")[room.key] ?? 0
        try #require(unread == texts.count)
      }
      let count = try await chat.leaders().first?.messages ?? 0
      try #require(count == texts.count)
      for text in crash.acknowledged { try #require(texts.contains(text), "\(text) is lost") }
      try await chat.database.close()
    }
  }

}

// One after the other with the tests that get signals, too.
extension DeploymentSamples {
  @Test("SIGTERM ends the chat server, and everything is on the disk")
  func chat() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("dendro-chat-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    // What the process does until the service has caught the signal.
    let before = DendroPlatform.signal(SIGTERM, SIG_IGN)
    defer { DendroPlatform.signal(SIGTERM, before) }
    let path = folder.path
    let service = Task {
      try await Chat.serve(at: path) { chat in
        _ = try await chat.makeRoom("Tea", for: "ada")
        // As a client that stays.
        while !Task.isCancelled {
          kill(getpid(), SIGTERM)
          try await Task.sleep(for: .milliseconds(1))
        }
      }
    }
    try await service.value
    let chat = try await Chat.open(Database.open(at: path))
    #expect(try await chat.rooms().map(\.value.name) == ["Tea"])
    try await chat.database.close()
  }
}
