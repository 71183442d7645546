import Dendro
import Foundation

/// A chat server's state: rooms, messages, who is there, what was not read, and who writes most. What clients send and get
/// over their connections is not its business.
struct Chat: Sendable {
  struct Message: Codable, Hashable, Sendable {
    var author: String
    var text: String
    /// Filled in by the database.
    @ServerTimestamp var sentAt: Date?
  }

  struct Room: Codable, Hashable, Sendable {
    var name: String
    var members: [String: Bool] = [:]
  }

  struct Rank: Codable, Hashable, Sendable {
    var messages: Int
  }

  enum Problem: Error, Equatable {
    case noSuchRoom(String)
    case noMember(String)
    case roomIsFull
  }

  /// Members of a room.
  static let memberLimit = 100

  let database: Database
  private let root: DatabaseReference

  // MARK: Begin and end

  /// Opens the data, brings those of an older version to the present one, and forgets who was there before a crash.
  static func open(_ database: Database) async throws -> Chat {
    try await database.migrate(versionAt: "version", steps)
    let chat = Chat(database: database, root: database.reference())
    try await chat.root.child("online").removeValue()
    return chat
  }

  /// The service: ends with SIGTERM, or with its task.
  static func serve(
    at directory: String, clients: @escaping @Sendable (Chat) async throws -> Void
  ) async throws {
    let database = try await Database.open(at: directory, waitingFor: .seconds(30))
    let chat = try await open(database)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await database.run(until: SIGTERM, SIGINT) }
      group.addTask { try await clients(chat) }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  private static let steps: [@Sendable (MutableData) throws -> Void] = [
    // 1: members were an array of names.
    { data in
      for case let room as MutableData in data["rooms"].children {
        guard let names = try? room["members"].data(as: [String].self) else { continue }
        try room["members"].setValue(
          from: Dictionary(names.map { ($0, true) }, uniquingKeysWith: { $1 }))
      }
    }
  ]

  // MARK: Rooms

  /// - Returns: the new room's id.
  func makeRoom(_ name: String, for founder: String) async throws -> String {
    try await root.child("rooms").addChild(from: Room(name: name, members: [founder: true]))
  }

  func rooms() async throws -> Children<Room> {
    try await root.child("rooms").queryOrdered(byChild: "name").getData(as: Children<Room>.self)
  }

  func join(_ room: String, as user: String) async throws {
    try await root.child("rooms/\(room)").runTransaction(as: Room.self) { data in
      guard var found = data else { throw Problem.noSuchRoom(room) }
      guard found.members.count < Self.memberLimit else { throw Problem.roomIsFull }
      found.members[user] = true
      data = found
    }
  }

  // MARK: Messages

  /// Stores a message, and counts it for its author and as unread for all other members, in one write.
  ///
  /// - Returns: its id, once no crash can take it away any more.
  @discardableResult
  func send(_ text: String, to room: String, from author: String) async throws -> String {
    guard let members = try await root.child("rooms/\(room)").getData(as: Room?.self)?.members
    else { throw Problem.noSuchRoom(room) }
    guard members[author] == true else { throw Problem.noMember(author) }
    let id = root.childByAutoId().key ?? ""
    try await root.update { update in
      try update.set("messages/\(room)/\(id)", from: Message(author: author, text: text))
      update.increment("authors/\(author)/messages", by: 1)
      for member in members.keys where member != author {
        update.increment("unread/\(member)/\(room)", by: 1)
      }
    }
    return id
  }

  /// The last messages of a room, and again whenever they change.
  func lastMessages(
    in room: String, count: UInt = 50
  ) -> some AsyncSequence<Children<Message>, any Error> & Sendable {
    root.child("messages/\(room)").queryLimited(toLast: count)
      .values(as: Children<Message>.self, undecodable: .skipping { _, _ in })
  }

  func unread(by user: String) async throws -> [String: Int] {
    try await root.child("unread/\(user)").getData(as: [String: Int]?.self) ?? [:]
  }

  func markAsRead(_ room: String, by user: String) async throws {
    try await root.child("unread/\(user)/\(room)").removeValue()
  }

  /// Those who have written most, first.
  func leaders(_ count: UInt = 10) async throws -> [(name: String, messages: Int)] {
    let authors = try await root.child("authors").queryOrdered(byChild: "messages")
      .queryLimited(toLast: count).getData(as: Children<Rank>.self)
    return authors.reversed().map { ($0.key, $0.value.messages) }
  }

  // MARK: Presence

  /// A connected client; the user is shown as present until it ends, however that happens.
  func connect(_ user: String) async throws -> DatabaseSession {
    let session = database.makeSession()
    let place = root.child("online/\(user)").childByAutoId()
    try session.onDisconnectRemoveValue(at: place)
    try await place.setValue(true)
    return session
  }

  func online() async throws -> [String] {
    try await root.child("online").getData().map(\.key)
  }
}
