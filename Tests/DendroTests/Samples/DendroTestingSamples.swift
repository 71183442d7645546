import DendroTesting
import Testing

@Suite("DendroTesting.md")
struct DendroTestingSamples {
  @Test("every crash of a program")
  func crashes() {
    // sample
    let disk = SimulatedDisk(seed: 1)
    // … run the program on the disk, and note what it acknowledged and after which operation
    for point in disk.crashPoints() {
      point.forEachState { state in
        // Open what is there: everything acknowledged before point.operationCount must be found,
        // nothing may be there in part, and nothing after something that is not there.
        check(point.disk(state), acknowledgedBefore: point.operationCount)
      }
    }
    // end
  }

  private func check(_ disk: SimulatedDisk, acknowledgedBefore operation: Int) {
    #expect(disk.operationCount == 0 && operation == 0)
  }
}
