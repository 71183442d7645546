#if os(Linux)
  import Dendro
  import DendroPlatform
  import DendroTesting
  import Testing

  /// A database reports failures on standard error when no handler takes them. Standard error may be a pipe that
  /// nobody reads.
  @Suite("Standard error that takes nothing")
  struct FullPipeTests {
    /// Puts a full pipe in the place of standard error.
    private static func fillStandardError() -> Bool {
      var ends: [Int32] = [0, 0]
      guard pipe(&ends) == 0, fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 else { return false }
      let bytes = [UInt8](repeating: 0x20, count: 4096)
      while write(ends[1], bytes, bytes.count) > 0 {}
      while write(ends[1], bytes, 1) > 0 {}
      return fcntl(ends[1], F_SETFL, 0) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO
    }

    private static func set(_ reference: DatabaseReference, _ value: String) {
      reference.setValue(value)
    }

    @Test("writes without a completion that fail hold up no others")
    func acknowledgements() async {
      await #expect(processExitsWith: .success) {
        // If it waits for the pipe, the process ends by this.
        alarm(60)
        let disk = SimulatedDisk(seed: 1)
        let database = try Database.open(at: "/db", on: disk)
        let reference = database.reference()
        try await reference.child("a").setValue("1")
        let usual = dup(STDERR_FILENO)
        guard Self.fillStandardError() else { exit(1) }
        disk.freeSpace = 0
        let long = String(repeating: "long", count: 100_000)
        for number in 0..<300 {
          // Each refusal is another line.
          Self.set(reference.child("n\(number)"), number % 2 == 0 ? long : String(number))
          Self.set(reference.child("bad#\(number)"), "1")
          _ = try? await reference.child("b").setValue(long)
        }
        disk.freeSpace = nil
        while (try? await reference.child("c").setValue("2")) == nil {}
        #expect(try await reference.child("c").getData().value as? String == "2")
        dup2(usual, STDERR_FILENO)
        try await database.close()
      }
    }
  }
#endif
