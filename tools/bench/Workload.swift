/// Something that is measured: one word, one sentence, and how it is done.
struct Workload: Sendable {
  let name: String
  let sentence: String
  let run: @Sendable (Session) async throws -> Void

  static let all: [Workload] = [.tree, .sets, .reopen, .durable, .blog, .checkpoint, .listeners]
}
