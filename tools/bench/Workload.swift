/// A workload: its name, a sentence that describes it, and the function that measures it.
struct Workload: Sendable {
  let name: String
  let sentence: String
  let run: @Sendable (Session) async throws -> Void

  static let all: [Workload] = [
    .tree, .sets, .reopen, .durable, .blog, .checkpoint, .listeners, .top, .counters, .reads,
  ]
}
