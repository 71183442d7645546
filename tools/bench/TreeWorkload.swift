import DendroTesting
import DendroTree

extension Workload {
  static let tree = Workload(
    name: "tree",
    sentence:
      "500,000 leaves at posts/<push id>/<field> in the tree alone: sets, reads, views, memory."
  ) { session in
    let sets = PostSets(count: session.scaled(500_000))
    let paths = try sets.paths.map { try Path(parsing: $0) }
    let nodes = sets.values.map { Node(.string($0)) }
    var shuffling = SeededRandomness(seed: 2)
    let shuffled = Array(paths.indices).shuffled(using: &shuffling)
    let count = Double(paths.count)

    var inOrder: [Double] = []
    var outOfOrder: [Double] = []
    var overwriting: [Double] = []
    var viewing: [Double] = []
    var reading: [Double] = []
    var memory: [Double] = []
    var countedBytes: [Double] = []
    for _ in 0..<session.rounds {
      let before = residentByteCount()
      var root = Node.empty
      inOrder.append(
        count
          / (await seconds {
            for index in paths.indices {
              Sink.take(root.apply(.set(paths[index], nodes[index])).count)
            }
          }))
      memory.append(Double(residentByteCount() - before) / count)
      countedBytes.append(root.memory().bytesPerLeaf)
      reading.append(
        count
          / (await seconds {
            for index in shuffled { Sink.take(root.node(at: paths[index]).isLeaf ? 1 : 0) }
          }))
      // Every leaf gets another value of the same size, so every set changes a leaf and no page grows.
      overwriting.append(
        count
          / (await seconds {
            for index in shuffled {
              Sink.take(root.apply(.set(paths[index], nodes[(index + 1) % nodes.count])).count)
            }
          }))
      viewing.append(
        count
          / (await seconds {
            for index in shuffled {
              let view = root
              Sink.take(root.apply(.set(paths[index], nodes[index])).count)
              Sink.take(view.childCount)
            }
          }))
      root = .empty
      outOfOrder.append(
        count
          / (await seconds {
            for index in shuffled { Sink.take(root.apply(.set(paths[index], nodes[index])).count) }
          }))
      Sink.take(root.childCount)
    }
    session.record(Figure("tree", "sets in order", "a second", inOrder))
    session.record(Figure("tree", "sets shuffled", "a second", outOfOrder))
    session.record(Figure("tree", "overwriting shuffled", "a second", overwriting))
    session.record(Figure("tree", "overwriting, a view before each", "a second", viewing))
    session.record(Figure("tree", "reads shuffled", "a second", reading))
    session.record(Figure("tree", "memory", "bytes a leaf", memory))
    session.record(Figure("tree", "memory, as the tree counts it", "bytes a leaf", countedBytes))
  }
}
